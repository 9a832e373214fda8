include_guard(GLOBAL)

#[=======================================================================[.rst:
Pick, of symbols of libc, those that have moved there from a library since glibc 2.28,
whose abilist files have them there and not in libc.

  kernel_portable_moved(<out-var> FROM <library> AMONG <name@version>...)
#]=======================================================================]
function(kernel_portable_moved out_var)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FROM" "AMONG")
  set(
    moved_libpthread.so.0
    __pthread_cleanup_routine __pthread_getspecific __pthread_key_create __pthread_mutex_destroy __pthread_mutex_init
    __pthread_mutex_lock __pthread_mutex_trylock __pthread_mutex_unlock __pthread_mutexattr_destroy
    __pthread_mutexattr_init __pthread_mutexattr_settype __pthread_once __pthread_register_cancel
    __pthread_register_cancel_defer __pthread_rwlock_destroy __pthread_rwlock_init __pthread_rwlock_rdlock
    __pthread_rwlock_tryrdlock __pthread_rwlock_trywrlock __pthread_rwlock_unlock __pthread_rwlock_wrlock
    __pthread_setspecific __pthread_unregister_cancel __pthread_unregister_cancel_restore __pthread_unwind_next __send
    _pthread_cleanup_pop _pthread_cleanup_pop_restore _pthread_cleanup_push _pthread_cleanup_push_defer call_once
    cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_timedwait cnd_wait mtx_destroy mtx_init mtx_lock mtx_timedlock
    mtx_trylock mtx_unlock pthread_atfork pthread_attr_getaffinity_np pthread_attr_getguardsize pthread_attr_getstack
    pthread_attr_getstackaddr pthread_attr_getstacksize pthread_attr_setaffinity_np pthread_attr_setguardsize
    pthread_attr_setstack pthread_attr_setstackaddr pthread_attr_setstacksize pthread_barrier_destroy pthread_barrier_init
    pthread_barrier_wait pthread_barrierattr_destroy pthread_barrierattr_getpshared pthread_barrierattr_init
    pthread_barrierattr_setpshared pthread_cancel pthread_condattr_getclock pthread_condattr_getpshared
    pthread_condattr_setclock pthread_condattr_setpshared pthread_create pthread_detach pthread_getaffinity_np
    pthread_getattr_default_np pthread_getattr_np pthread_getconcurrency pthread_getcpuclockid pthread_getname_np
    pthread_getspecific pthread_join pthread_key_create pthread_key_delete pthread_kill pthread_kill_other_threads_np
    pthread_mutex_consistent pthread_mutex_consistent_np pthread_mutex_getprioceiling pthread_mutex_setprioceiling
    pthread_mutex_timedlock pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_getkind_np
    pthread_mutexattr_getprioceiling pthread_mutexattr_getprotocol pthread_mutexattr_getpshared
    pthread_mutexattr_getrobust pthread_mutexattr_getrobust_np pthread_mutexattr_gettype pthread_mutexattr_init
    pthread_mutexattr_setkind_np pthread_mutexattr_setprioceiling pthread_mutexattr_setprotocol
    pthread_mutexattr_setpshared pthread_mutexattr_setrobust pthread_mutexattr_setrobust_np pthread_mutexattr_settype
    pthread_once pthread_rwlock_destroy pthread_rwlock_init pthread_rwlock_rdlock pthread_rwlock_timedrdlock
    pthread_rwlock_timedwrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock
    pthread_rwlock_wrlock pthread_rwlockattr_destroy pthread_rwlockattr_getkind_np pthread_rwlockattr_getpshared
    pthread_rwlockattr_init pthread_rwlockattr_setkind_np pthread_rwlockattr_setpshared pthread_setaffinity_np
    pthread_setattr_default_np pthread_setconcurrency pthread_setname_np pthread_setschedprio pthread_setspecific
    pthread_sigmask pthread_sigqueue pthread_spin_destroy pthread_spin_init pthread_spin_lock pthread_spin_trylock
    pthread_spin_unlock pthread_testcancel pthread_timedjoin_np pthread_tryjoin_np pthread_yield sem_close sem_destroy
    sem_getvalue sem_init sem_open sem_post sem_timedwait sem_trywait sem_unlink sem_wait thrd_create thrd_detach
    thrd_exit thrd_join tss_create tss_delete tss_get tss_set
  )
  set(
    moved_libdl.so.2
    dladdr dladdr1 dlclose dlerror dlinfo dlmopen dlopen dlsym dlvsym
  )
  set(
    moved_librt.so.1
    __mq_open_2 aio_cancel aio_cancel64 aio_error aio_error64 aio_fsync aio_fsync64 aio_init aio_read aio_read64
    aio_return aio_return64 aio_suspend aio_suspend64 aio_write aio_write64 lio_listio lio_listio64 mq_close mq_getattr
    mq_notify mq_open mq_receive mq_send mq_setattr mq_timedreceive mq_timedsend mq_unlink shm_open shm_unlink
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime
  )
  set(
    moved_libutil.so.1
    forkpty login login_tty logout logwtmp openpty
  )
  set(
    moved_libanl.so.1
    gai_cancel gai_error gai_suspend getaddrinfo_a
  )
  set(
    moved_libresolv.so.2
    __b64_ntop __b64_pton __dn_comp __dn_count_labels __dn_expand __dn_skipname __fp_nquery __fp_query __fp_resstat
    __hostalias __loc_aton __loc_ntoa __p_cdname __p_cdnname __p_class __p_class_syms __p_fqname __p_fqnname __p_option
    __p_query __p_rcode __p_secstodate __p_time __p_type __p_type_syms __putlong __putshort __res_close __res_dnok
    __res_hnok __res_hostalias __res_isourserver __res_mailok __res_mkquery __res_nameinquery __res_nmkquery __res_nquery
    __res_nquerydomain __res_nsearch __res_nsend __res_ownok __res_queriesmatch __res_query __res_querydomain __res_search
    __res_send __sym_ntop __sym_ntos __sym_ston _gethtbyaddr _gethtbyname _gethtbyname2 _gethtent _getlong _getshort
    _res_opcodes _sethtent inet_net_ntop inet_net_pton inet_neta ns_datetosecs ns_format_ttl ns_get16 ns_get32
    ns_initparse ns_makecanon ns_msg_getflag ns_name_compress ns_name_ntol ns_name_ntop ns_name_pack ns_name_pton
    ns_name_rollback ns_name_skip ns_name_uncompress ns_name_unpack ns_parse_ttl ns_parserr ns_put16 ns_put32
    ns_samedomain ns_samename ns_skiprr ns_sprintrr ns_sprintrrf ns_subdomain res_gethostbyaddr res_gethostbyname
    res_gethostbyname2 res_send_setqhook res_send_setrhook
  )
  if(NOT DEFINED "moved_${arg_FROM}")
    message(FATAL_ERROR "nothing moved from '${arg_FROM}' to libc")
  endif()
  foreach(name IN LISTS "moved_${arg_FROM}")
    set("is_${name}" TRUE)
  endforeach()
  set(found)
  foreach(symbol IN LISTS arg_AMONG)
    string(REGEX MATCH "^[^@]+" name "${symbol}")
    if(DEFINED "is_${name}")
      list(APPEND found "${symbol}")
    endif()
  endforeach()
  set("${out_var}" "${found}" PARENT_SCOPE)
endfunction()
