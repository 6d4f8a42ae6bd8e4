"""What to write instead of what cannot be exported."""

import traceback

# Instead of operators whose results have no fixed size.
OF_FIXED_SIZE = {
    "bincount": "count into a fixed number of bins: `torch.zeros(bins).index_add(0, ids, weights)`",
    "repeat_interleave": "give `output_size`, or gather rows with indices of fixed size",
}

PACKED = ("a packed sequence has sizes that depend on the lengths",
          "run the layer on the padded batch, and mask what is beyond each length (`torch.where`)")
# What cannot be traced by its nature, told by the code of PyTorch's that was running: (the end of its file's name, its
# function or a part of its line, (why, what to write instead)).
UNTRACEABLE = (
    ("nn/utils/rnn.py", "pack_padded_sequence", PACKED),
    ("nn/utils/rnn.py", "pad_packed_sequence", PACKED),
    ("nn/modules/rnn.py", "hx = torch.zeros(", PACKED),
    ("nn/functional.py", "ctc_loss",
     ("`ctc_loss` has sizes that depend on the lengths",
      "return what the loss takes (`log_probs`), and compute the loss outside of the model")),
    ("nn/modules/batchnorm.py", "num_batches_tracked",
     ("a batch norm with `momentum=None` reads how many calls it has had",
      "give `momentum` a number, or normalise in `forward` with buffers of your own")),
)


def untraceable(error):
    """(why, what to write instead), where PyTorch's own code is known to be in the way; else None."""
    frames = [frame for each in (error, error.__cause__, error.__context__) if each
              for frame in traceback.extract_tb(each.__traceback__)]
    return next((advice for file, code, advice in UNTRACEABLE
                 if any(frame.filename.endswith(file) and code in f"{frame.name} {frame.line}" for frame in frames)), None)
