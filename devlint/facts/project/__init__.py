"""The other files of a project: where a name is defined, what a file offers, objects of classes defined elsewhere."""
