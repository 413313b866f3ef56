"""devlint in IPython, Jupyter and Colab: `%load_ext devlint`."""
