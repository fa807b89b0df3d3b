/** Plans attach and detach steps for a volume, from its attachments and the pods that use it. Pure. */

/** As upstream: the time that an unhealthy node has to unmount. */
export const UNMOUNT_MS = 360_000

export interface AttachmentView {
  readonly node: string
  /** The driver confirmed the attachment. */
  readonly isConfirmed: boolean
  /** The node reports the volume in use, or has not reported since the attachment. */
  readonly isMounted: boolean
  /** The time since the last user went. */
  readonly unwantedMs: number
  readonly isHealthy: boolean
  readonly isOutOfService: boolean
}

export interface VolumeView {
  /** May be attached to several nodes at once. */
  readonly isShared: boolean
  readonly wanted: readonly string[]
  readonly attachments: readonly AttachmentView[]
  /** Whether the timeout alone allows a detach from an unresponsive node. */
  readonly mayForce: boolean
  /** No new operation on the node: one is pending, or `what` failed recently. */
  readonly isBusy: (node: string, what: 'attach' | 'detach') => boolean
}

export type AttachmentStep =
  /** `isChecked`: only if the node status, read again, does not list it as used. */
  | { readonly to: 'detach'; readonly node: string; readonly isChecked: boolean }
  | { readonly to: 'attach'; readonly node: string }
  /** A user cannot get the volume because it is attached elsewhere. */
  | { readonly to: 'complain'; readonly node: string; readonly elsewhere: readonly string[] }

export interface AttachmentPlan {
  readonly steps: readonly AttachmentStep[]
  /** The time of the next check without an event. */
  readonly waitMs: number
}

export function planAttachments(sight: VolumeView): AttachmentPlan {
  const { isShared, wanted, attachments, isBusy } = sight
  const unwanted = attachments.filter(({ node }) => !wanted.includes(node))
  const free = unwanted.filter(({ node }) => !isBusy(node, 'detach'))
  const detaching = free.flatMap((seen) => planDetach(seen, sight))
  // An exclusive volume has one operation at a time.
  if (!isShared && detaching.length > 0) return { steps: detaching.slice(0, 1), waitMs: Infinity }
  const confirmed = attachments.filter(({ isConfirmed }) => isConfirmed).map(({ node }) => node)
  const missing = wanted.filter((node) => !confirmed.includes(node) && !isBusy(node, 'attach'))
  const attaching = isShared ? missing.map(attach) : planExclusive(missing, confirmed)
  const waits = free.map(({ unwantedMs }) => UNMOUNT_MS - unwantedMs).filter((ms) => ms >= 0)
  // One millisecond more, so that the time has passed.
  return { steps: [...detaching, ...attaching], waitMs: Math.min(Infinity, ...waits) + 1 }
}

const attach = (node: string): AttachmentStep => ({ to: 'attach', node })

function planDetach(seen: AttachmentView, { mayForce }: VolumeView): AttachmentStep[] {
  const { node, isMounted, unwantedMs, isHealthy, isOutOfService } = seen
  const isOverdue = mayForce && unwantedMs > UNMOUNT_MS
  if (isMounted && !(isOverdue && !isHealthy) && !isOutOfService) return []
  return [{ to: 'detach', node, isChecked: !isOverdue && !isOutOfService }]
}

function planExclusive(missing: readonly string[], confirmed: readonly string[]): AttachmentStep[] {
  if (confirmed.length === 0) return missing.slice(0, 1).map(attach)
  return missing.map((node) => ({ to: 'complain', node, elsewhere: confirmed.filter((other) => other !== node) }))
}
