/** Which images nobody needs, and which of them go when the disk fills up, by upstream's rules. Pure but for its memory. */
import type { Container } from '../cri/container-messages.ts'
import type { Image } from '../cri/runtime-messages.ts'

export interface ImagePolicy {
  /** From so much of the file system in use on, images go, until it is the low one. */
  readonly highPercent: number
  readonly lowPercent: number
  /** One that has just come may be about to be used. */
  readonly minAgeMs: number
  /** Unused for longer goes anyway; 0: not for that. */
  readonly maxAgeMs: number
}

export const IMAGE_POLICY: ImagePolicy = { highPercent: 85, lowPercent: 80, minAgeMs: 120_000, maxAgeMs: 0 }

interface Known {
  readonly image: Image
  readonly sinceMs: number
  readonly usedMs: number
  readonly isUsed: boolean
}

export interface UnusedImage {
  readonly id: string
  readonly sizeBytes: number
  readonly sinceMs: number
  /** When it was last seen in use; 0 for never. */
  readonly usedMs: number
}

/** Sandboxes are made of it. Runtimes of old do not say that it is pinned. */
const PAUSE = /(?:^|\/)pause[:@]/

export class ImageUse {
  #known = new Map<string, Known>()

  /** Told what there is, and what uses it: dead containers too, which may be started again. */
  see(images: readonly Image[], containers: readonly Container[], nowMs: number): void {
    const used = new Set(
      containers.flatMap(({ image, imageId, imageRef }) => [image?.image ?? '', imageId, imageRef]).filter(Boolean),
    )
    const before = this.#known
    this.#known = new Map(
      images.map((image) => {
        const known = before.get(image.id)
        const isUsed = [image.id, ...image.repoTags, ...image.repoDigests].some((name) => used.has(name))
        const usedMs = isUsed ? nowMs : (known?.usedMs ?? 0)
        return [image.id, { image, isUsed, usedMs, sinceMs: known?.sinceMs ?? nowMs }]
      }),
    )
  }

  /** Those that may go, the one longest unused first. */
  unused(): UnusedImage[] {
    return [...this.#known.values()]
      .filter(
        ({ image, isUsed }) => !isUsed && !image.pinned && ![...image.repoTags, ...image.repoDigests].some(isPause),
      )
      .map(({ image: { id, size }, sinceMs, usedMs }) => ({ id, sizeBytes: Number(size), sinceMs, usedMs }))
      .sort((a, b) => a.usedMs - b.usedMs || a.sinceMs - b.sinceMs)
  }
}

const isPause = (name: string): boolean => PAUSE.test(name)

/** Those that nobody has used for too long. `beganMs`: since when it is known what is used. */
export function outdated(
  images: readonly UnusedImage[],
  { maxAgeMs }: ImagePolicy,
  { nowMs, beganMs }: { readonly nowMs: number; readonly beganMs: number },
): UnusedImage[] {
  if (maxAgeMs === 0 || nowMs - beganMs <= maxAgeMs) return []
  return images.filter(({ usedMs }) => nowMs - usedMs > maxAgeMs)
}

/** As many as it takes to free so much; fewer when there are no more. */
export function toFree(images: readonly UnusedImage[], bytes: number, minAgeMs: number, nowMs: number): UnusedImage[] {
  const chosen: UnusedImage[] = []
  let freed = 0
  for (const image of images) {
    if (freed >= bytes) break
    if (nowMs - image.sinceMs < minAgeMs) continue
    chosen.push(image)
    freed += image.sizeBytes
  }
  return chosen
}

export interface Disk {
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly inodes: number
  readonly inodesFree: number
}

/** What is to be freed of a file system; undefined when it is not too full. */
export function excessOf(
  { capacityBytes, availableBytes }: Disk,
  { highPercent, lowPercent }: ImagePolicy,
): { readonly bytes: number; readonly usedPercent: number } | undefined {
  const available = Math.min(availableBytes, capacityBytes)
  const usedPercent = 100 - Math.trunc((available * 100) / capacityBytes)
  if (usedPercent < highPercent) return undefined
  return { usedPercent, bytes: Math.trunc((capacityBytes * (100 - lowPercent)) / 100) - available }
}

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB']

/** `264.2 GiB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length)
  return `${(bytes / 1024 ** power).toFixed(1)} ${UNITS[power - 1]}`
}
