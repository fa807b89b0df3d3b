/** How long the supervisor waits for what. */
import type { Host } from './host.ts'
import type { ProcessName } from './process-names.ts'

export interface Timings {
  /** For a program that may still be on its way to the disk; `settleMs` once it is seen. */
  readonly file: {
    readonly rounds: number
    readonly beforeMs: number
    readonly afterMs: number
    readonly settleMs: number
  }
  /** Before and after the proxy to the API servers is restarted. */
  readonly proxyMs: number
  /** For the network of pods. */
  readonly network: { readonly rounds: number; readonly everyMs: number }
  /** Before kube-proxy: what it lays on an overlay is only good when that has come to rest. */
  readonly settleMs: { readonly overlay: number; readonly other: number }
  readonly patience: Readonly<Record<ProcessName, Patience>>
}

/** How often a process is launched, and after how long it must still be there. */
export interface Patience {
  readonly attempts: number
  readonly waitMs: number
  /** Before this attempt the proxy to the API servers is restarted. */
  readonly proxyBefore?: number
}

/** The figures that nodes of this kind have always had. */
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

/** Nothing is cut when a network is made, and files come whole or not at all. */
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
