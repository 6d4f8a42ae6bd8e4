// The layer of system calls: a program for the kernel that looks at each call's number and a few of its arguments.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "compiler/untrusted/isolation.h"

namespace tilepilot::untrusted {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;  // no filter
#endif

constexpr uint32_t kForeignNumbers = 0x40000000;  // of x32, another way to the same calls

// What threads that compute need of the kernel.
constexpr long kComputing[] = {
    // memory
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_mincore,
    SYS_msync,
    SYS_memfd_create,
    SYS_membarrier,
    SYS_get_mempolicy,
    // files that are open, and where they are
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_fcntl,
    SYS_dup,
    SYS_dup3,
    SYS_ftruncate,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_getcwd,
    SYS_ppoll,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_fadvise64,
    // threads, time, signals of its own
    SYS_futex,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_exit,
    SYS_exit_group,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_getcpu,
    SYS_gettid,
    SYS_getpid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrusage,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    // the machine
    SYS_getrandom,
    SYS_uname,
    SYS_sysinfo,
#if defined(__x86_64__)
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_poll,
    SYS_dup2,
    SYS_time,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_arch_prctl,
#endif
};

// What changes the machine, reaches other processes or the network, or opens large parts of the kernel.
constexpr long kDangerous[] = {
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_quotactl,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_mknodat,
    SYS_fanotify_init,
    SYS_shmget,
    SYS_shmat,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
#if defined(__x86_64__)
    SYS_mknod,
    SYS_ioperm,
    SYS_iopl,
    SYS_modify_ldt,
#endif
};

constexpr long kStartingPrograms[] = {
    SYS_execve, SYS_execveat, SYS_clone3,
#if defined(__x86_64__)
    SYS_fork,   SYS_vfork,
#endif
};

// A call that is allowed where the bits of `mask` in an argument are `value`.
struct Condition {
  long number;
  int argument;
  uint32_t mask, value;
};

constexpr uint32_t kThread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                                    CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_VFORK;
constexpr uint32_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC;

std::vector<Condition> conditions(Calls calls) {
  std::vector<Condition> all = {{SYS_clone, 0, kThread | kNewNamespaces, kThread}};
  if (calls != Calls::computing) return all;
  const auto self = static_cast<uint32_t>(getpid());
  constexpr uint32_t kAll = ~uint32_t{0};
  all.insert(all.end(), {{SYS_openat, 2, kWriting, O_RDONLY},
                         {SYS_prctl, 0, kAll, PR_SET_NAME},
                         {SYS_prctl, 0, kAll, PR_GET_NAME},
                         {SYS_prctl, 0, kAll, 0x53564d41},  // names of memory, as malloc gives them
                         {SYS_tgkill, 0, kAll, self},
                         {SYS_prlimit64, 0, kAll, 0},
                         {SYS_prlimit64, 0, kAll, self}});
#if defined(__x86_64__)
  all.push_back({SYS_open, 1, kWriting, O_RDONLY});
#endif
  return all;
}

class Program {
 public:
  explicit Program(Calls calls) {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    add(BPF_JMP | BPF_JGE | BPF_K, kForeignNumbers, 0, 1);
    answer(refusal(ENOSYS));
#endif
    // A process that may not start others may start threads, one way.
    if (calls != Calls::compiling)
      for (const Condition& condition : conditions(calls)) allow_if(condition);
    if (calls == Calls::computing) {
      for (const long number : kComputing) on(number, SECCOMP_RET_ALLOW);
      on(SYS_openat, refusal(EACCES));
      for (const long number : kDangerous) on(number, refusal(EPERM));
      answer(refusal(ENOSYS));  // what libraries try first and then do without
      return;
    }
    for (const long number : kDangerous) on(number, refusal(EPERM));
    if (calls == Calls::driving) {
      on(SYS_clone, refusal(EPERM));
      for (const long number : kStartingPrograms) on(number, refusal(ENOSYS));
    }
    answer(SECCOMP_RET_ALLOW);
  }

  bool install() {
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (kArchitecture == 0) return false;
    // All threads, or the process if it has one only.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  }

 private:
  std::vector<sock_filter> code_;

  static uint32_t refusal(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }
  void add(int code, uint32_t k, uint8_t if_true = 0, uint8_t if_false = 0) {
    code_.push_back({static_cast<uint16_t>(code), if_true, if_false, k});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void answer(uint32_t what) { add(BPF_RET | BPF_K, what); }
  void on(long number, uint32_t what) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
    answer(what);
  }
  void allow_if(const Condition& condition) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(condition.number), 0, 5);
    load(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(condition.argument));  // its low half
    add(BPF_ALU | BPF_AND | BPF_K, condition.mask);
    add(BPF_JMP | BPF_JEQ | BPF_K, condition.value, 0, 1);
    answer(SECCOMP_RET_ALLOW);
    load(offsetof(seccomp_data, nr));
  }
};

}  // namespace

bool filter_calls(Calls calls) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return Program(calls).install();
}

}  // namespace tilepilot::untrusted
