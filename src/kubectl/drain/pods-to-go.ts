/** Which pods leave a node that is drained, which stay, and which stand in the way. */
import type { Pod } from '#apis/core/v1.ts'
import { epochMsOf } from '#meta/time.ts'

export interface DrainWish {
  readonly force: boolean
  readonly ignoreDaemonSets: boolean
  readonly deleteEmptyDirData: boolean
  /** Pods that should have been gone for so long are left alone; 0: none. */
  readonly skipDeletedAfterSeconds: number
}

/** Whether the set that a pod belongs to is there: an error's text when it could not be read. */
export type DaemonSetState = 'there' | { readonly isMissing: boolean; readonly message: string }

type DaemonSetOf = (pod: Pod, name: string) => Promise<DaemonSetState>

export interface PodsToGo {
  readonly pods: readonly Pod[]
  /** One text, empty when there is nothing to warn of. */
  readonly warnings: string
  readonly errors: readonly string[]
}

interface Verdict {
  readonly goes: boolean
  readonly warning?: string
  readonly error?: string
}

const OKAY: Verdict = { goes: true }
const SKIP: Verdict = { goes: false }

/** `daemonSetOf` answers for pods of daemon sets. */
export async function podsToGo(
  pods: readonly Pod[],
  wish: DrainWish,
  { nowMs, daemonSetOf }: { readonly nowMs: number; readonly daemonSetOf: DaemonSetOf },
): Promise<PodsToGo> {
  const judged = await Promise.all(
    pods.map(async (pod) => ({ pod, verdict: await verdictOf(pod, wish, { nowMs, daemonSetOf }) })),
  )
  const named = (text: (verdict: Verdict) => string | undefined): string[] => {
    const found = new Map<string, string[]>()
    for (const { pod, verdict } of judged) {
      const said = text(verdict)
      if (said === undefined) continue
      found.set(said, [...(found.get(said) ?? []), `${pod.metadata.namespace}/${pod.metadata.name}`])
    }
    return [...found].map(([said, names]) => `${said}: ${names.join(', ')}`)
  }
  return {
    pods: judged.filter(({ verdict }) => verdict.goes).map(({ pod }) => pod),
    warnings: named(({ warning }) => warning).join('; '),
    errors: named(({ error }) => error).map((text) => `cannot delete ${text}`),
  }
}

/** The first that holds a pod back decides; of those that only warn, the last. */
async function verdictOf(
  pod: Pod,
  wish: DrainWish,
  { nowMs, daemonSetOf }: { readonly nowMs: number; readonly daemonSetOf: DaemonSetOf },
): Promise<Verdict> {
  if (isLongDeleted(pod, wish.skipDeletedAfterSeconds, nowMs)) return SKIP
  const set = daemonSetName(pod)
  const own = set === undefined || isFinished(pod) ? OKAY : daemonSetVerdict(await daemonSetOf(pod, set), wish)
  if (!own.goes) return own
  if (Object.hasOwn(pod.metadata.annotations ?? {}, 'kubernetes.io/config.mirror')) return SKIP
  const local = localStorageVerdict(pod, wish)
  if (!local.goes) return local
  return unmanagedVerdict(pod, wish)
}

export function isLongDeleted({ metadata }: Pod, afterSeconds: number, nowMs: number): boolean {
  const { deletionTimestamp } = metadata
  if (afterSeconds <= 0 || deletionTimestamp === undefined) return false
  return Math.trunc((nowMs - epochMsOf(deletionTimestamp)) / 1000) > afterSeconds
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

function daemonSetName({ metadata }: Pod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  return owner?.kind === 'DaemonSet' && owner.apiVersion === 'apps/v1' ? owner.name : undefined
}

function daemonSetVerdict(state: DaemonSetState, { force, ignoreDaemonSets }: DrainWish): Verdict {
  if (state !== 'there') {
    return state.isMissing && force ? { goes: true, warning: state.message } : { goes: false, error: state.message }
  }
  if (ignoreDaemonSets) return { goes: false, warning: 'ignoring DaemonSet-managed Pods' }
  return { goes: false, error: 'DaemonSet-managed Pods (use --ignore-daemonsets to ignore)' }
}

function localStorageVerdict(pod: Pod, { deleteEmptyDirData }: DrainWish): Verdict {
  const isLocal = pod.spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) ?? false
  if (!isLocal || isFinished(pod) || deleteEmptyDirData) return OKAY
  return { goes: false, error: 'Pods with local storage (use --delete-emptydir-data to override)' }
}

function unmanagedVerdict(pod: Pod, { force }: DrainWish): Verdict {
  const isManaged = pod.metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false
  if (isFinished(pod) || isManaged) return OKAY
  if (force) return { goes: true, warning: 'deleting Pods that declare no controller' }
  return { goes: false, error: 'Pods that declare no controller (use --force to override)' }
}
