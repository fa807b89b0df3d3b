/** Decides which sysctls pods may set: those that are namespaced and safe, and those that the node allows. Pure. */
import { goQuote } from '#lib/go/text.ts'

const SAFE: ReadonlySet<string> = new Set([
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
])

const IPC = ['kernel.shm', 'kernel.msg', 'kernel.sem', 'fs.mqueue.']

function namespaceOf(name: string): 'ipc' | 'net' | undefined {
  if (name === 'kernel.sem' || IPC.some((prefix) => name.startsWith(prefix))) return 'ipc'
  return name.startsWith('net.') ? 'net' : undefined
}

/** In a name that uses slashes as separators, dots and slashes swap their roles. */
function normal(name: string): string {
  const first = /[./]/.exec(name)?.[0]
  if (first !== '/') return name
  return name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'))
}

export interface SysctlScope {
  readonly hostNetwork?: boolean
  readonly hostIPC?: boolean
}

/**
 * Why the sysctl is not allowed; undefined when it is. `allowed` lists the unsafe sysctls of the node, with patterns
 * such as `net.*`.
 */
export function sysctlFault(
  sysctl: string,
  { hostNetwork = false, hostIPC = false }: SysctlScope,
  allowed: readonly string[] = [],
): string | undefined {
  const name = normal(sysctl)
  const isAllowed = allowed
    .map(normal)
    .some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
  if (!SAFE.has(name) && !isAllowed) return `${goQuote(name)} not allowlisted`
  const namespace = namespaceOf(name)
  if ((namespace === 'ipc' && hostIPC) || (namespace === 'net' && hostNetwork)) {
    return `${goQuote(name)} not allowed with host ${namespace} enabled`
  }
  return undefined
}
