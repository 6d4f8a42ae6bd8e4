#include "eval/worker/shared_crumb.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace tilepilot::eval {
namespace {

void* map_page(int file) {
  void* page = mmap(nullptr, sizeof(SharedCrumb), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : page;
}

}  // namespace

CrumbPage::CrumbPage() : file_(memfd_create("tilepilot-crumb", MFD_CLOEXEC)) {
  if (ftruncate(file_.number(), sizeof(SharedCrumb)) != 0) return;
  if (void* page = map_page(file_.number())) crumb_ = new (page) SharedCrumb;
}

CrumbPage::CrumbPage(const Descriptor& handed) { crumb_ = static_cast<SharedCrumb*>(map_page(handed.number())); }

CrumbPage::~CrumbPage() {
  if (crumb_) munmap(crumb_, sizeof(SharedCrumb));
}

}  // namespace tilepilot::eval
