/**
 * Actual state of the attach/detach controller: attachments, the pods that use each volume, and pending operations.
 * Rebuilt at the start from node status and VolumeAttachments.
 */
import { type AttachedVolume, Nodes } from '#apis/core/v1.ts'
import { VolumeAttachments } from '#apis/storage/v1.ts'
import { compareText } from '#lib/go/text.ts'
import type { Cache } from '#reconcile/cache.ts'

import { type Attachable, attachableIn } from '../attachable.ts'

export interface Attachment {
  readonly node: string
  /** The driver confirmed the attachment. */
  isConfirmed: boolean
  /** Listed in the node's status: the node may mount it. */
  isReported: boolean
  unwantedSinceMs?: number | undefined
  /**
   * The node's resourceVersion at the time of the attachment: an unchanged node may have mounted the volume without a
   * report.
   */
  readonly nodeVersion: string
  /** The node's last report. */
  isInUse: boolean
}

export interface Pending {
  readonly to: 'attach' | 'detach'
  readonly node: string
  readonly sinceMs: number
  looks: number
}

export interface VolumeState {
  readonly name: string
  /** The volume as it was last seen. */
  attachable?: Attachable | undefined
  readonly attachments: Map<string, Attachment>
  /** Keys of the pods that use it, by node and uid. A pod counts until it is gone, whatever happens to its claims. */
  readonly wanted: Map<string, Map<string, string>>
  /** Nodes whose pods got an event that the volume is attached elsewhere. */
  readonly multiAttachReported: Set<string>
  /** Pending operations by lane: see `laneOf`. */
  readonly pending: Map<string, Pending>
}

export class ActualState {
  readonly #volumes = new Map<string, VolumeState>()
  readonly #cache: Cache
  /** Nodes with a status that may be outdated. */
  readonly unreported: Set<string> = new Set()
  /** Nodes that ever had an attached volume; the status of others is not written. */
  readonly #known = new Set<string>()

  constructor(cache: Cache) {
    this.#cache = cache
    for (const { metadata, status } of cache.list(Nodes)) {
      for (const { name } of status.volumesAttached ?? []) {
        // The node's current report counts: it had time to update.
        this.note(this.volume(name), metadata.name ?? '', true, '')
      }
    }
    for (const attachment of cache.list(VolumeAttachments)) {
      const attachable = attachableIn(attachment, cache)
      if (attachable === undefined) continue
      const [state, { nodeName }] = [this.volume(attachable.name), attachment.spec]
      if (!state.attachments.has(nodeName)) this.note(state, nodeName, false)
    }
  }

  names(): Iterable<string> {
    return this.#volumes.keys()
  }

  volumes(): Iterable<VolumeState> {
    return this.#volumes.values()
  }

  volume(name: string): VolumeState {
    const known = this.#volumes.get(name)
    if (known !== undefined) return known
    const fresh = {
      name,
      attachments: new Map(),
      wanted: new Map(),
      multiAttachReported: new Set<string>(),
      pending: new Map(),
    }
    this.#volumes.set(name, fresh)
    return fresh
  }

  /** Forgets a volume without users and attachments. */
  forget({ name }: VolumeState): void {
    this.#volumes.delete(name)
  }

  /** Records an attachment, confirmed or uncertain. */
  note(
    state: VolumeState,
    node: string,
    isConfirmed: boolean,
    nodeVersion: string = this.#cache.get(Nodes, node)?.metadata.resourceVersion ?? '',
  ): void {
    const known = state.attachments.get(node)
    if (known !== undefined) known.isConfirmed = isConfirmed
    else {
      state.attachments.set(node, { node, isConfirmed, isReported: false, nodeVersion, isInUse: true })
    }
    if (isConfirmed) this.report(state, node, true)
  }

  report(state: VolumeState, node: string, isReported: boolean): void {
    const attachment = state.attachments.get(node)
    if (attachment === undefined || attachment.isReported === isReported) return
    attachment.isReported = isReported
    this.#known.add(node)
    this.unreported.add(node)
  }

  /** The node's status may have been overwritten. */
  recheck(node: string): void {
    if (this.#known.has(node)) this.unreported.add(node)
  }

  remove(state: VolumeState, node: string): void {
    this.report(state, node, false)
    state.attachments.delete(node)
  }

  /** The volumes to list in the node's status. */
  attachedTo(node: string): AttachedVolume[] {
    const names: string[] = []
    for (const { name, attachments } of this.#volumes.values()) {
      if (attachments.get(node)?.isReported === true) names.push(name)
    }
    return names.toSorted(compareText).map((name) => ({ name, devicePath: '' }))
  }
}

/** An exclusive volume has one lane, a shared one has one for each node. */
export function laneOf({ attachable }: VolumeState, node: string): string {
  return attachable?.isShared === false ? '' : node
}
