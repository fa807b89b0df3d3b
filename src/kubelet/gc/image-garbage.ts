/** Chooses the unused images to remove when the disk fills up, by upstream's rules. Pure except for its memory. */
import type { Container, Image } from '#apis/wire/cri.ts'

import type { Disk } from '../machine/disks.ts'

export interface ImagePolicy {
  /** Above the high percentage, images are removed until the low one is reached. */
  readonly highPercent: number
  readonly lowPercent: number
  /** A newer image may be about to be used. */
  readonly minAgeMs: number
  /** Images unused for longer are always removed; 0 disables this. */
  readonly maxAgeMs: number
}

export const IMAGE_POLICY: ImagePolicy = { highPercent: 85, lowPercent: 80, minAgeMs: 120_000, maxAgeMs: 0 }

interface KnownImage {
  readonly image: Image
  readonly sinceMs: number
  readonly usedMs: number
  readonly isUsed: boolean
}

export interface UnusedImage {
  readonly id: string
  readonly sizeBytes: number
  readonly sinceMs: number
  /** Last time in use; 0 for never. */
  readonly usedMs: number
}

/** The sandbox image; older runtimes do not report it as pinned. */
const PAUSE = /(?:^|\/)pause[:@]/

export class ImageUse {
  #known = new Map<string, KnownImage>()

  /** Records the images and their users, including dead containers, which may restart. */
  observe(images: readonly Image[], containers: readonly Container[], nowMs: number): void {
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

  /** Removable images, longest unused first. */
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

/** Images unused for longer than maxAge. `beganMs` is the start of the observation. */
export function outdated(
  images: readonly UnusedImage[],
  { maxAgeMs }: ImagePolicy,
  { nowMs, beganMs }: { readonly nowMs: number; readonly beganMs: number },
): UnusedImage[] {
  if (maxAgeMs === 0 || nowMs - beganMs <= maxAgeMs) return []
  return images.filter(({ usedMs }) => nowMs - usedMs > maxAgeMs)
}

/** Images to remove to free `bytes`; fewer if there are not enough. */
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

/** The bytes to free; undefined when usage is below the limit. */
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
