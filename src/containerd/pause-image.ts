/** Builds the sandbox image, so that no registry is needed. */
import { tarArchive } from '#lib/files/tar-write.ts'

import type { ImageWriter } from './image-writer.ts'
import { MEDIA_TYPE, nameImage } from './manifest.ts'
import { type PauseArchitecture, pauseProgram } from './pause-program.ts'

/** The tag changes with the content: an image in use is never changed. */
export const PAUSE_IMAGE = 'hyperkube.local/pause:1'

const ARCHITECTURES: Readonly<Record<string, PauseArchitecture>> = { x64: 'amd64', arm64: 'arm64' }

/** The architecture in Kubernetes' spelling. Throws for one without a pause program. */
export function pauseArchitecture(nodeArch: string): PauseArchitecture {
  const known = ARCHITECTURES[nodeArch]
  if (known === undefined) throw new Error(`There is no pause program for architecture "${nodeArch}" yet`)
  return known
}

export async function writePauseImage(writer: ImageWriter, architecture: PauseArchitecture): Promise<void> {
  const content = pauseProgram(architecture)
  const layer = await writer.write([tarArchive([{ name: 'pause', mode: 0o755, content }])])
  const config = await writer.writeJson({
    architecture,
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: { Entrypoint: ['/pause'], WorkingDir: '/', User: '65535:65535' },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'hyperkube' }],
  })
  await nameImage(writer, {
    names: [PAUSE_IMAGE],
    config,
    layers: [{ ...layer, mediaType: MEDIA_TYPE.layer }],
    pinned: true,
  })
}
