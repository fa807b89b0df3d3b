/** The intervals and timeouts of the supervisor. */
import type { Host } from './host.ts'
import type { ProcessName } from './process-names.ts'

export interface Timings {
  /** For a program that may still be copied to disk; `settleMs` after it appears. */
  readonly file: {
    readonly rounds: number
    readonly beforeMs: number
    readonly afterMs: number
    readonly settleMs: number
  }
  /** Before and after a restart of the proxy to the API servers. */
  readonly proxyMs: number
  /** For the pod network. */
  readonly network: { readonly rounds: number; readonly everyMs: number }
  /** Before kube-proxy, whose policies need a settled overlay. */
  readonly settleMs: { readonly overlay: number; readonly other: number }
  readonly patience: Readonly<Record<ProcessName, Patience>>
}

/** The number of launches of a process, and the time after which it must still run. */
export interface Patience {
  readonly attempts: number
  readonly waitMs: number
  /** The proxy to the API servers restarts before this attempt. */
  readonly proxyBefore?: number
}

/** The established values for Windows nodes. */
const windows: Timings = {
  file: { rounds: 15, beforeMs: 1000, afterMs: 1000, settleMs: 5000 },
  proxyMs: 5000,
  network: { rounds: 6, everyMs: 5000 },
  settleMs: { overlay: 30_000, other: 10_000 },
  patience: {
    kubelet: { attempts: 6, waitMs: 15_000 },
    flanneld: { attempts: 6, waitMs: 20_000, proxyBefore: 4 },
    'kube-proxy': { attempts: 6, waitMs: 10_000 },
    'kube-network-policies': { attempts: 6, waitMs: 10_000 },
  },
}

/** Linux networks interrupt no connections, and files are replaced atomically. */
const linux: Timings = {
  file: { rounds: 15, beforeMs: 0, afterMs: 2000, settleMs: 0 },
  proxyMs: 0,
  network: { rounds: 60, everyMs: 500 },
  settleMs: { overlay: 0, other: 0 },
  patience: {
    kubelet: { attempts: 6, waitMs: 3000 },
    flanneld: { attempts: 6, waitMs: 3000 },
    'kube-proxy': { attempts: 6, waitMs: 3000 },
    'kube-network-policies': { attempts: 6, waitMs: 3000 },
  },
}

export function timingsOf({ system }: Pick<Host, 'system'>): Timings {
  return system === 'windows' ? windows : linux
}
