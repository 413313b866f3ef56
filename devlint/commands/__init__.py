"""The commands of the command line, one module each with `main(arguments) -> exit code`."""
