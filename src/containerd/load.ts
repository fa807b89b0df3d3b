/** Loads the images of an archive into containerd for its kubelet. */
import { type ArchivedImage, imagesIn } from './archive-images.ts'
import { storeArchive } from './archive.ts'
import { type ImageWriter, withImageWriter, type WriterTools } from './image-writer.ts'
import { nameImage } from './manifest.ts'

export interface LoadOptions {
  /** Architecture in Kubernetes' spelling: `amd64`. */
  readonly architecture: string
  /** See `imagesIn`. */
  readonly name?: string
}

/** Loads all images or none, and returns their names. Throws ArchiveError, or GrpcError when containerd fails. */
export function loadArchive(
  bytes: AsyncIterable<Uint8Array>,
  tools: WriterTools,
  { architecture, name }: LoadOptions,
): Promise<string[]> {
  return withImageWriter(tools, async (writer) => {
    const images = imagesIn(await storeArchive(bytes, writer), architecture, name)
    for (const image of images) await nameArchived(writer, image)
    return images.flatMap(({ names }) => names)
  })
}

async function nameArchived(writer: ImageWriter, image: ArchivedImage): Promise<void> {
  if ('layers' in image) {
    await nameImage(writer, image)
    return
  }
  for (const [digest, labels] of image.references) await writer.label(digest, labels)
  await writer.name({ names: [image.config, ...image.names], target: image.target })
}
