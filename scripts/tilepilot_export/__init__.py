"""Parts of export_reference.py that stand on their own. They import torch: import them after it is known to be there."""
