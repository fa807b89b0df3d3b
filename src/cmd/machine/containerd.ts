/**
 * `hyperkube machine containerd`: the containerd of a node, started as "hyperkube up" does it, with a network for pods as soon
 * as flannel has said which addresses they have.
 */
import { createReadStream, watch } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { imageApiBehind } from '#kubelet/containerd/image-api.ts'
import type { WriterTools } from '#kubelet/containerd/image-writer.ts'
import { loadArchive } from '#kubelet/containerd/load.ts'
import { keepOwnImage } from '#kubelet/containerd/own-image.ts'
import { pauseArchitecture } from '#kubelet/containerd/pause-image.ts'
import { startContainerd } from '#kubelet/containerd/start.ts'
import { removeContainerd } from '#kubelet/containerd/stop.ts'
import { aborted } from '#lib/abort.ts'
import { formatCidr, parseCidr } from '#lib/cidr.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import type { Logger } from '#lib/log.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'

import { followArchives } from './image-archives.ts'

export const containerd: Program = defineProgram({
  name: 'containerd',
  long:
    'containerd runs the containerd of this node. Its containers go on when it ends. With --remove it ends them, and takes all that ' +
    'is its own off the machine.',
  flags: {
    containerd: {
      'data-dir': flag(string, '', '`folder` of the node'),
      'subnet-file': flag(string, '/run/flannel/subnet.env', '`file` in which flannel says which addresses pods have'),
      images: flag(string, '', '`folder` whose archives of images are loaded, also those that come into it'),
      remove: flag(bool, false, 'whether it is to go instead'),
    },
    logs: LOG_FLAGS,
  },
  async run({ flags, clock, random, log, env }, signal) {
    const dataDir = flags['data-dir']
    if (dataDir === '') throw new ProgramError('Say with --data-dir which node this is')
    if (flags.remove) {
      await removeContainerd({ dataDir, clock, random, log, env })
      return 0
    }
    await using closing = new AsyncDisposableStack()
    const started = await startContainerd({ dataDir, clock, random, log, env }, closing)
    const root = resolve(fileURLToPath(new URL('../../../', import.meta.url)))
    const tools = { api: imageApiBehind(started.client), clock, random, signal }
    const image = keepOwnImage(tools, { root, id: basename(root), node: process.execPath }).then(
      (isNew) => isNew && log.info('The image of this program is there for pods'),
      (error: unknown) => log.error(error, 'There is no image of this program: addons cannot run here'),
    )
    closing.defer(async () => void (await image))
    if (flags.images !== '') await followArchives(flags.images, (file) => loadImages(file, tools, log), closing)
    await followSubnets(flags['subnet-file'], closing, async (cidrs) => {
      log.info('Pods have addresses of', { cidrs })
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
    log.info('Images were loaded', { file, names })
  } catch (error) {
    log.error(error, 'An archive of images cannot be loaded', { file })
  } finally {
    bytes.destroy()
  }
}

/** Told at once when there are some already, and whenever they change. */
async function followSubnets(
  file: string,
  closing: AsyncDisposableStack,
  told: (cidrs: readonly string[]) => Promise<void>,
): Promise<void> {
  let last = ''
  const look = async (): Promise<void> => {
    const cidrs = subnetsOf(await readFile(file, 'utf8').catch(() => ''))
    if (cidrs.length === 0 || cidrs.join() === last) return
    last = cidrs.join()
    await told(cidrs)
  }
  await mkdir(dirname(file), { recursive: true, mode: 0o755 })
  const watcher = watch(dirname(file), (_, name) => {
    if (name === null || name === basename(file)) void look()
  })
  closing.defer(() => watcher.close())
  await look()
}

/** `FLANNEL_SUBNET=10.42.1.1/24` says the address of the node; its range is what pods have. Pure. */
export function subnetsOf(text: string): string[] {
  const found = text.matchAll(/^FLANNEL_(?:IPV6_)?SUBNET=(\S+)$/gm)
  return [...found].flatMap(([, cidr = '']) => {
    const block = parseCidr(cidr)
    return block === undefined ? [] : [formatCidr(block)]
  })
}
