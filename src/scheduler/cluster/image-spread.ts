/** Counts the nodes that have each image, and records image sizes. */
import type { ContainerImage } from '#apis/core/v1.ts'

interface Image {
  readonly bytes: number
  readonly nodes: Set<string>
}

export class ImageSpread {
  readonly #images = new Map<string, Image>()
  readonly #onNode = new Map<string, readonly ContainerImage[]>()

  /** Replaces the images of a node. */
  replace(node: string, images: readonly ContainerImage[] | undefined): void {
    if (this.#onNode.get(node) === images) return
    for (const name of namesOf(this.#onNode.get(node))) {
      const image = this.#images.get(name)
      image?.nodes.delete(node)
      if (image?.nodes.size === 0) this.#images.delete(name)
    }
    if (images === undefined) this.#onNode.delete(node)
    else this.#onNode.set(node, images)
    for (const { names, sizeBytes = 0 } of images ?? []) {
      for (const name of names ?? []) {
        const known = this.#images.get(name)
        if (known === undefined) this.#images.set(name, { bytes: sizeBytes, nodes: new Set([node]) })
        else known.nodes.add(node)
      }
    }
  }

  /** Undefined: no node has it. */
  of(name: string): { readonly bytes: number; readonly nodes: ReadonlySet<string> } | undefined {
    return this.#images.get(name)
  }
}

function namesOf(images: readonly ContainerImage[] = []): string[] {
  return images.flatMap(({ names }) => names ?? [])
}
