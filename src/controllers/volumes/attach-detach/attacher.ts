/**
 * Attaches and detaches volumes through VolumeAttachments and waits for the driver. Writes events of the pods that use a
 * volume, and the attached volumes into the status of nodes.
 */
import { Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { type VolumeAttachment, VolumeAttachments } from '#apis/storage/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'
import { FailureBackoffs } from '#reconcile/operations.ts'

import type { ControllerContext } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import { attachmentName, csiIn } from '../attachable.ts'
import { ActualState, laneOf, type Pending, type VolumeState } from './actual-state.ts'
import type { AttachmentStep } from './plan.ts'

/** The timeout for a driver. */
const DRIVER_MS = 120_000
/** The first poll interval for a driver's result; it grows from half a second. */
const FIRST_LOOK_MS = 500
const LAST_LOOK_MS = 7000
const LOOK_GROWTH = 1.05

export class Attacher {
  readonly actualState: ActualState
  readonly #context: ControllerContext
  readonly #failures: FailureBackoffs

  constructor(context: ControllerContext) {
    this.#context = context
    this.actualState = new ActualState(context.cache)
    this.#failures = new FailureBackoffs(context.clock)
  }

  /** The time until `what` may be tried again; Infinity while an operation is pending. */
  waitMs(state: VolumeState, node: string, what: Pending['to']): number {
    if (state.pending.has(laneOf(state, node))) return Infinity
    return this.#failures.waitMs(this.#key(state, node, what))
  }

  async take(state: VolumeState, step: AttachmentStep): Promise<void> {
    if (step.to === 'complain') this.#complain(state, step.node, step.elsewhere)
    else if (step.to === 'attach') await this.#attach(state, step.node)
    else await this.#detach(state, step.node, step.isChecked)
  }

  /** Checks pending operations; returns the time until the next check. */
  follow(state: VolumeState): number {
    let nextMs = Infinity
    for (const [lane, pending] of state.pending) {
      const outcome = this.#outcome(state, pending)
      if (outcome === 'pending') {
        nextMs = Math.min(nextMs, LAST_LOOK_MS, FIRST_LOOK_MS * LOOK_GROWTH ** pending.looks++)
        continue
      }
      state.pending.delete(lane)
      if (outcome === 'done') this.#succeed(state, pending)
      else this.#fail(state, pending, outcome.message)
    }
    return nextMs
  }

  /** Writes attached volumes to node status. A failed write is retried next time. */
  async updateNodeStatuses(): Promise<void> {
    for (const node of this.actualState.unreported) await this.#updateNodeStatus(node)
  }

  /**
   * Compares attachments with the expected state: drivers may lose a volume, and users may delete a VolumeAttachment.
   */
  async verify(): Promise<string[]> {
    const lost: string[] = []
    for (const state of this.actualState.volumes()) {
      const { csi } = state.attachable ?? {}
      if (csi === undefined) continue
      for (const { node, isConfirmed } of state.attachments.values()) {
        const name = attachmentName(csi, node)
        if (!isConfirmed || state.pending.has(laneOf(state, node)) || (await this.#isAttached(name))) continue
        this.actualState.remove(state, node)
        lost.push(state.name)
      }
    }
    return lost
  }

  async #isAttached(name: string): Promise<boolean> {
    const { cache, client, signal } = this.#context
    const known = cache.get(VolumeAttachments, name)
    if (known !== undefined) return known.status.attached
    try {
      return (await client.get(VolumeAttachments, { name }, { signal })).status.attached
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
  }

  async #attach(state: VolumeState, node: string): Promise<void> {
    const { cache, client, clock, signal } = this.#context
    const pending: Pending = { to: 'attach', node, sinceMs: clock.elapsed(), looks: 0 }
    const { csi } = state.attachable ?? {}
    if (csi === undefined) return this.#succeed(state, pending)
    const name = attachmentName(csi, node)
    try {
      if (cache.get(VolumeAttachments, name) === undefined) {
        const spec = { attacher: csi.driver, source: csi.source, nodeName: node }
        await client.create(VolumeAttachments, { metadata: { name }, spec }, { signal })
      }
    } catch (error) {
      if (!isAlreadyExists(error)) {
        return this.#fail(state, pending, `kubernetes.io/csi: attacher.Attach failed: ${messageOf(error)}`)
      }
    }
    state.pending.set(laneOf(state, node), pending)
  }

  async #detach(state: VolumeState, node: string, isChecked: boolean): Promise<void> {
    const { client, clock, signal } = this.#context
    const pending: Pending = { to: 'detach', node, sinceMs: clock.elapsed(), looks: 0 }
    // The node must not mount it any more: a volume is detached only after the node status says so.
    this.actualState.report(state, node, false)
    try {
      if (this.actualState.unreported.has(node)) await this.#updateNodeStatus(node)
    } catch (error) {
      this.actualState.report(state, node, true)
      throw error
    }
    const csi = csiIn(state.name)
    try {
      if (isChecked) await this.#checkUnused(state, node)
      if (csi === undefined) return this.#succeed(state, pending)
      await client.delete(VolumeAttachments, { name: attachmentName(csi, node) }, { signal })
      state.pending.set(laneOf(state, node), pending)
    } catch (error) {
      if (isNotFound(error)) this.#succeed(state, pending)
      else this.#fail(state, pending, messageOf(error))
    }
  }

  /** Reads the node from the server: the cache may not show yet that the node uses the volume. */
  async #checkUnused({ name }: VolumeState, node: string): Promise<void> {
    const { client, signal } = this.#context
    const fresh = await client.get(Nodes, { name: node }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    if (fresh?.status.volumesInUse?.includes(name) === true) {
      throw new Error('volume is still in use by node, according to Node status')
    }
  }

  #outcome(state: VolumeState, pending: Pending): 'pending' | 'done' | { readonly message: string } {
    const { cache, clock } = this.#context
    const csi = csiIn(state.name) ?? { driver: '', handle: '' }
    const attachment = cache.get(VolumeAttachments, attachmentName(csi, pending.node))
    const outcome = pending.to === 'attach' ? attachOutcome(attachment) : detachOutcome(attachment)
    const tookMs = clock.elapsed() - pending.sinceMs
    // The error of an earlier attempt is still in the status when the next one begins.
    if (typeof outcome === 'object' && tookMs < FIRST_LOOK_MS) return 'pending'
    if (outcome !== 'pending' || tookMs < DRIVER_MS) return outcome
    const driver = pending.to === 'attach' ? csi.driver : 'unknown'
    const what = `of ${driver} CSI driver to ${pending.to} volume ${csi.handle}`
    return { message: `timed out waiting for external-attacher ${what}` }
  }

  #succeed(state: VolumeState, { to, node }: Pending): void {
    this.#failures.forget(this.#key(state, node, to))
    if (to === 'detach') return this.actualState.remove(state, node)
    this.actualState.note(state, node, true)
    this.#recordForPods(state, node, {
      type: 'Normal',
      reason: 'SuccessfulAttachVolume',
      what: 'AttachVolume.Attach succeeded',
      rest: '',
    })
  }

  /** The volume's state is now unknown. */
  #fail(state: VolumeState, { to, node }: Pending, message: string): void {
    this.#failures.add(this.#key(state, node, to))
    this.actualState.note(state, node, false)
    this.#context.log
      .v(2)
      ?.info('Failed to attach or detach volume', { operation: to, volume: state.name, node, err: message })
    if (to === 'detach') return
    this.#recordForPods(state, node, {
      type: 'Warning',
      reason: 'FailedAttachVolume',
      what: 'AttachVolume.Attach failed',
      rest: `: ${message}`,
    })
  }

  #complain(state: VolumeState, node: string, elsewhere: readonly string[]): void {
    if (state.multiAttachReported.has(node)) return
    state.multiAttachReported.add(node)
    const users = elsewhere.flatMap((other) => this.#podsAt(state, other))
    const note = { type: 'Warning', reason: 'FailedAttachVolume', what: 'Waiting for detach' } as const
    for (const pod of this.#podsAt(state, node))
      this.#recordForPod(pod, state, { ...note, rest: usersText(users, pod) })
  }

  #podsAt(state: VolumeState, node: string): Pod[] {
    const keys = [...(state.wanted.get(node)?.values() ?? [])].toSorted(compareText)
    return keys.map((key) => this.#context.cache.get(Pods, key)).filter((pod) => pod !== undefined)
  }

  #recordForPods(state: VolumeState, node: string, note: Note): void {
    for (const pod of this.#podsAt(state, node)) this.#recordForPod(pod, state, note)
  }

  #recordForPod(pod: Pod, { name, attachable }: VolumeState, { type, reason, what, rest }: Note): void {
    const message = `${what} for volume ${JSON.stringify(attachable?.title ?? name)} ${rest}`
    this.#context.event(pod, { type, reason, message })
  }

  async #updateNodeStatus(name: string): Promise<void> {
    const { cache, client, signal } = this.#context
    const volumesAttached = this.actualState.attachedTo(name)
    const known = cache.get(Nodes, name)
    if (known !== undefined && !semanticEqual(known.status.volumesAttached, volumesAttached)) {
      const value = { status: { volumesAttached: volumesAttached.length === 0 ? null : volumesAttached } }
      const where = { name, subresource: 'status' }
      await client.patch(Nodes, where, { type: 'strategic', value }, { signal }).catch(ignoringAbsence)
    }
    this.actualState.unreported.delete(name)
  }

  #key(state: VolumeState, node: string, what: Pending['to']): string {
    return `${what} ${state.name} ${laneOf(state, node)}`
  }
}

interface Note {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly what: string
  readonly rest: string
}

function ignoringAbsence(error: unknown): void {
  if (!isNotFound(error)) throw error
}

function attachOutcome(attachment: VolumeAttachment | undefined): 'pending' | 'done' | { readonly message: string } {
  // The cache does not have it yet.
  if (attachment === undefined) return 'pending'
  if (isBeingDeleted(attachment)) return { message: 'volume attachment is being deleted' }
  const { attached, attachError } = attachment.status
  if (attached) return 'done'
  return attachError === undefined ? 'pending' : { message: attachError.message ?? '' }
}

function detachOutcome(attachment: VolumeAttachment | undefined): 'pending' | 'done' | { readonly message: string } {
  if (attachment === undefined) return 'done'
  const { detachError } = attachment.status
  return detachError === undefined ? 'pending' : { message: detachError.message ?? '' }
}

/** Names pods of the same namespace only. */
function usersText(users: readonly Pod[], { metadata: { namespace } }: Pod): string {
  const near = users.filter(({ metadata }) => metadata.namespace === namespace).map(({ metadata }) => metadata.name)
  const far = users.length - near.length
  if (users.length === 0) {
    return 'Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node'
  }
  const others = `${far} pod(s) in different namespaces`
  if (near.length === 0) return `Volume is already used by ${others}`
  return `Volume is already used by pod(s) ${near.join(', ')}${far > 0 ? ` and ${others}` : ''}`
}
