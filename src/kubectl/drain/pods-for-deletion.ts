/** Decides for each pod of a drained node whether to evict it, to skip it or to fail. */
import type { Pod } from '#apis/core/v1.ts'
import { epochMsOf } from '#meta/time.ts'

export interface DrainOptions {
  readonly force: boolean
  readonly ignoreDaemonSets: boolean
  readonly deleteEmptyDirData: boolean
  /** Skips pods whose deletion began more than this long ago; 0 skips none. */
  readonly skipDeletedAfterSeconds: number
}

/** Whether the daemon set of a pod exists, with the error text if it could not be read. */
export type DaemonSetState = 'there' | { readonly isMissing: boolean; readonly message: string }

type DaemonSetOf = (pod: Pod, name: string) => Promise<DaemonSetState>

export interface PodsForDeletion {
  readonly pods: readonly Pod[]
  /** One text; empty without warnings. */
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

/** `daemonSetOf` reads the daemon set of a pod. */
export async function podsForDeletion(
  pods: readonly Pod[],
  options: DrainOptions,
  { nowMs, daemonSetOf }: { readonly nowMs: number; readonly daemonSetOf: DaemonSetOf },
): Promise<PodsForDeletion> {
  const verdicts = await Promise.all(
    pods.map(async (pod) => ({ pod, verdict: await verdictOf(pod, options, { nowMs, daemonSetOf }) })),
  )
  const named = (text: (verdict: Verdict) => string | undefined): string[] => {
    const found = new Map<string, string[]>()
    for (const { pod, verdict } of verdicts) {
      const message = text(verdict)
      if (message === undefined) continue
      found.set(message, [...(found.get(message) ?? []), `${pod.metadata.namespace}/${pod.metadata.name}`])
    }
    return [...found].map(([message, names]) => `${message}: ${names.join(', ')}`)
  }
  return {
    pods: verdicts.filter(({ verdict }) => verdict.goes).map(({ pod }) => pod),
    warnings: named(({ warning }) => warning).join('; '),
    errors: named(({ error }) => error).map((text) => `cannot delete ${text}`),
  }
}

/** The first check that rejects a pod decides; of mere warnings, the last. */
async function verdictOf(
  pod: Pod,
  options: DrainOptions,
  { nowMs, daemonSetOf }: { readonly nowMs: number; readonly daemonSetOf: DaemonSetOf },
): Promise<Verdict> {
  if (isLongDeleted(pod, options.skipDeletedAfterSeconds, nowMs)) return SKIP
  const set = daemonSetName(pod)
  const own = set === undefined || isFinished(pod) ? OKAY : daemonSetVerdict(await daemonSetOf(pod, set), options)
  if (!own.goes) return own
  if (Object.hasOwn(pod.metadata.annotations ?? {}, 'kubernetes.io/config.mirror')) return SKIP
  const local = localStorageVerdict(pod, options)
  if (!local.goes) return local
  return unmanagedVerdict(pod, options)
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

function daemonSetVerdict(state: DaemonSetState, { force, ignoreDaemonSets }: DrainOptions): Verdict {
  if (state !== 'there') {
    return state.isMissing && force ? { goes: true, warning: state.message } : { goes: false, error: state.message }
  }
  if (ignoreDaemonSets) return { goes: false, warning: 'ignoring DaemonSet-managed Pods' }
  return { goes: false, error: 'DaemonSet-managed Pods (use --ignore-daemonsets to ignore)' }
}

function localStorageVerdict(pod: Pod, { deleteEmptyDirData }: DrainOptions): Verdict {
  const isLocal = pod.spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) ?? false
  if (!isLocal || isFinished(pod) || deleteEmptyDirData) return OKAY
  return { goes: false, error: 'Pods with local storage (use --delete-emptydir-data to override)' }
}

function unmanagedVerdict(pod: Pod, { force }: DrainOptions): Verdict {
  const isManaged = pod.metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false
  if (isFinished(pod) || isManaged) return OKAY
  if (force) return { goes: true, warning: 'deleting Pods that declare no controller' }
  return { goes: false, error: 'Pods that declare no controller (use --force to override)' }
}
