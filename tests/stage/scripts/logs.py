import logging
import sys

logger = logging.getLogger("kernels.matmul")
logger.info("not shown")
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stdout)
logger.info("compiled %s in %.2f s", "matmul", 1.5)
logger.warning("100% busy")
logger.debug("not shown")
logging.getLogger("kernels").setLevel("ERROR")
logger.warning("not shown")
logger.error("%(what)s failed", {"what": "copy"})
print(logger.isEnabledFor(logging.INFO), logger.getEffectiveLevel(), logging.getLevelName(30))
