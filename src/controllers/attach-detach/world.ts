/**
 * The world as the attach/detach controller knows it: what is attached where, who wanted it, what is under way. Rebuilt when
 * the controller begins, from what nodes report and from the attachments there are.
 */
import { type AttachedVolume, Nodes } from '#apis/core/v1.ts'
import { VolumeAttachments } from '#apis/storage/v1.ts'
import { compareText } from '#lib/go-text.ts'

import { type Attachable, attachableIn } from '../attachable.ts'
import type { Cache } from '../cache.ts'

export interface Attachment {
  readonly node: string
  /** It is there for sure: not only asked for. */
  isConfirmed: boolean
  /** Told in the node's status: from then on it may be mounted. */
  isReported: boolean
  unwantedSinceMs?: number | undefined
  /** As the node was when this was noted: it may have mounted it and not said so yet. */
  readonly nodeVersion: string
  /** What the node said last. */
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
  /** As it was when it was last there. */
  attachable?: Attachable | undefined
  readonly attachments: Map<string, Attachment>
  /** By node, the keys of pods that want it by their uid. They want it until they go, whatever becomes of their claims. */
  readonly wanted: Map<string, Map<string, string>>
  /** Nodes whose pods were told that it is elsewhere. */
  readonly told: Set<string>
  /** What is under way, by lane: see `laneOf`. */
  readonly pending: Map<string, Pending>
}

export class World {
  readonly #volumes = new Map<string, VolumeState>()
  readonly #cache: Cache
  /** Nodes whose status may not say what is attached. */
  readonly unreported: Set<string> = new Set()
  /** Nodes that something was ever attached to: the status of others is none of our business. */
  readonly #known = new Set<string>()

  constructor(cache: Cache) {
    this.#cache = cache
    for (const { metadata, status } of cache.list(Nodes)) {
      for (const { name } of status.volumesAttached ?? []) {
        // What the node says of it now counts: it has had the time.
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
    const fresh = { name, attachments: new Map(), wanted: new Map(), told: new Set<string>(), pending: new Map() }
    this.#volumes.set(name, fresh)
    return fresh
  }

  /** Nobody wants it and it is nowhere. */
  forget({ name }: VolumeState): void {
    this.#volumes.delete(name)
  }

  /** It is at the node, for sure or perhaps. */
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

  /** Its status may have been overwritten. */
  recheck(node: string): void {
    if (this.#known.has(node)) this.unreported.add(node)
  }

  remove(state: VolumeState, node: string): void {
    this.report(state, node, false)
    state.attachments.delete(node)
  }

  /** What the status of the node is to say. */
  attachedTo(node: string): AttachedVolume[] {
    const names: string[] = []
    for (const { name, attachments } of this.#volumes.values()) {
      if (attachments.get(node)?.isReported === true) names.push(name)
    }
    return names.toSorted(compareText).map((name) => ({ name, devicePath: '' }))
  }
}

/** What may be at one node at a time has one lane, everything else one for each node. */
export function laneOf({ attachable }: VolumeState, node: string): string {
  return attachable?.isShared === false ? '' : node
}
