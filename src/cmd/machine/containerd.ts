/**
 * `hyperkube machine containerd`: runs the containerd of a node, with the same setup as in `hyperkube up`. It
 * configures the pod network when flannel has written the ranges.
 */
import { createReadStream, watch } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { createImageApi } from '#containerd/image-api.ts'
import type { WriterTools } from '#containerd/image-writer.ts'
import { loadArchive } from '#containerd/load.ts'
import { ensureOwnImage } from '#containerd/own-image.ts'
import { pauseArchitecture } from '#containerd/pause-image.ts'
import { startContainerd } from '#containerd/start.ts'
import { removeContainerd } from '#containerd/stop.ts'
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import type { Logger } from '#lib/log/log.ts'
import { formatCidr, parseCidr } from '#lib/net/cidr.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'

import { followArchives } from './image-archives.ts'

export const containerd: Program = defineProgram({
  name: 'containerd',
  long:
    'containerd runs the containerd of this node. Its containers keep running when it stops. With --remove it stops them and removes ' +
    'all its files, links and rules from the machine.',
  flags: {
    containerd: {
      'data-dir': flag(string, '', '`folder` of the node'),
      'subnet-file': flag(
        string,
        '/run/flannel/subnet.env',
        '`file` with the subnet of the node, which flannel writes',
      ),
      images: flag(string, '', '`folder` with image archives to load; new archives are loaded as they appear'),
      remove: flag(bool, false, 'remove it instead of running it'),
    },
    logs: LOG_FLAGS,
  },
  async run({ flags, clock, random, log, env }, signal) {
    const dataDir = flags['data-dir']
    if (dataDir === '') throw new ProgramError('Set --data-dir to the folder of the node')
    if (flags.remove) {
      await removeContainerd({ dataDir, clock, random, log, env })
      return 0
    }
    await using closing = new AsyncDisposableStack()
    const started = await startContainerd({ dataDir, clock, random, log, env }, closing)
    const root = resolve(fileURLToPath(new URL('../../../', import.meta.url)))
    const tools = { api: createImageApi(started.client), clock, random, signal }
    const image = ensureOwnImage(tools, { root, id: basename(root), node: process.execPath }).then(
      (isNew) => isNew && log.info('Imported the hyperkube image into containerd'),
      (error: unknown) => log.error(error, 'Failed to build the hyperkube image; addons cannot run on this node'),
    )
    closing.defer(async () => void (await image))
    if (flags.images !== '') await followArchives(flags.images, (file) => loadImages(file, tools, log), closing)
    await followSubnets(flags['subnet-file'], closing, async (cidrs) => {
      log.info('Configuring the pod network with the pod CIDRs of the node', { cidrs })
      await started.setPodCidrs(cidrs)
    })
    await aborted(signal)
    return 0
  },
})

async function loadImages(file: string, tools: WriterTools, log: Logger): Promise<void> {
  const bytes = createReadStream(file)
  try {
    const names = await loadArchive(bytes, tools, { architecture: pauseArchitecture(process.arch) })
    log.info('Loaded images into containerd', { file, names })
  } catch (error) {
    log.error(error, 'Failed to load image archive', { file })
  } finally {
    bytes.destroy()
  }
}

/** Called at once if ranges exist, and whenever they change. */
async function followSubnets(
  file: string,
  closing: AsyncDisposableStack,
  onRanges: (cidrs: readonly string[]) => Promise<void>,
): Promise<void> {
  let last = ''
  const look = async (): Promise<void> => {
    const cidrs = subnetsOf(await readFile(file, 'utf8').catch(() => ''))
    if (cidrs.length === 0 || cidrs.join() === last) return
    last = cidrs.join()
    await onRanges(cidrs)
  }
  await mkdir(dirname(file), { recursive: true, mode: 0o755 })
  const watcher = watch(dirname(file), (_, name) => {
    if (name === null || name === basename(file)) void look()
  })
  closing.defer(() => watcher.close())
  await look()
}

/** `FLANNEL_SUBNET=10.42.1.1/24` has the address of the node; its range is the range of pods. Pure. */
export function subnetsOf(text: string): string[] {
  const found = text.matchAll(/^FLANNEL_(?:IPV6_)?SUBNET=(\S+)$/gm)
  return [...found].flatMap(([, cidr = '']) => {
    const block = parseCidr(cidr)
    return block === undefined ? [] : [formatCidr(block)]
  })
}
