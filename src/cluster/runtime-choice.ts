/** Chooses the node runtime: containers or simulated nodes. An existing cluster keeps its runtime. */
import { readFile } from 'node:fs/promises'

import { findPrograms } from '#containerd/programs.ts'

export type NodeRuntime = 'containerd' | 'simulated'

/** The requirements of containers. */
export interface Ability {
  readonly platform: string
  readonly isRoot: boolean
  /** Root inside of a container often may not mount. */
  readonly mayMount: boolean
  /** A sentence about missing programs; undefined: none. */
  readonly missing: string | undefined
}

/** Why containers cannot run here; undefined: they can. */
export function containerFault({ platform, isRoot, mayMount, missing }: Ability): string | undefined {
  if (platform !== 'linux') return 'containers need Linux'
  if (!isRoot) return 'containers need root'
  if (!mayMount) return 'containers need the right to mount (CAP_SYS_ADMIN)'
  return missing
}

export interface Choice {
  readonly runtime: NodeRuntime
  /** A hint for the user; undefined: as requested. */
  readonly why?: string
  /** The requested or previous runtime is not possible. */
  readonly fault?: string
}

export interface RuntimeOptions {
  readonly requested: 'auto' | NodeRuntime
  readonly nodes: number
  /** The previous runtime of this data directory; undefined: a new cluster. */
  readonly before: NodeRuntime | undefined
  readonly fault: string | undefined
}

export function chooseRuntime({ requested, nodes, before, fault }: RuntimeOptions): Choice {
  const wanted = requested === 'auto' ? before : requested
  if (wanted === 'simulated') return { runtime: 'simulated' }
  // Several nodes default to simulated ones, which are light.
  if (wanted === 'containerd') return { runtime: 'containerd', ...(fault !== undefined && nodes > 0 && { fault }) }
  if (nodes !== 1) return { runtime: 'simulated' }
  return fault === undefined ? { runtime: 'containerd' } : { runtime: 'simulated', why: fault }
}

const CAP_SYS_ADMIN = 1n << 21n

export async function readAbility(env: Readonly<Record<string, string | undefined>>): Promise<Ability> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  return {
    platform: process.platform,
    isRoot: process.getuid?.() === 0,
    mayMount: (effectiveCapabilities(status) & CAP_SYS_ADMIN) !== 0n,
    missing: await findPrograms(env).then(
      () => undefined,
      (error: Error) => error.message,
    ),
  }
}

/** From `/proc/self/status`. */
export function effectiveCapabilities(status: string): bigint {
  return BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
}
