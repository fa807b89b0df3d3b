/**
 * `hyperkube build` on machines that are namespaces of this one, each with its own network, host name, files and sshd: up, a
 * Deployment, up again, and then what happens to a cluster in its life: machines come and go, one dies, flags change, etcd is lost,
 * certificates and keys are renewed; at last remove. Needs root, sshd, etcd, etcdctl, containerd and CNI's plugins.
 *
 *     node test/upstream/build.ts [--workers 1] [--control-planes 1] [--life nodes,kill,upgrade,snapshot,certificates,encryption] [--keep]
 *
 * All of `--life` wants three control planes and three workers, and takes one machine more.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock } from '#lib/clock.ts'

import { Bed } from './build/bed.ts'
import { LIFE, type LifeName } from './build/life.ts'
import { filesOf, makeMachines } from './build/machines.ts'

const { values: options } = parseArgs({
  options: {
    workers: { type: 'string', default: '1' },
    'control-planes': { type: 'string', default: '1' },
    life: { type: 'string', default: '' },
    keep: { type: 'boolean', default: false },
  },
})

async function main(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-build-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const planes = Number(options['control-planes'])
  const count = planes + Number(options.workers)
  const life = options.life.split(',').filter((name): name is LifeName => name in LIFE)
  const { places, key } = await makeMachines(folder, life.includes('nodes') ? count + 1 : count, closing)
  const bed = new Bed({ folder, places, key, planes, count })
  await bed.write({})
  const before = new Map(await Promise.all(places.map(async (place) => [place.name, await filesOf(place)] as const)))
  await bed.build('up')
  await bed.kubectl('get', 'nodes', '-o', 'wide')
  await bed.deploy()
  const again = await bed.build('up')
  if (!again.includes('Nothing to do')) throw new Error('A second run has something to do')
  await bed.build('status')
  const failures: string[] = []
  for (const name of life) {
    bed.say(`=== ${name} ${new Date(realClock.now()).toISOString()}`)
    // One that fails does not hide what becomes of the others.
    const live = async (): Promise<void> => {
      await LIFE[name](bed)
      await bed.isWell()
    }
    await live().catch((error: Error) => {
      bed.say(`FAILED ${name}: ${error.stack}`)
      failures.push(name)
    })
  }
  await bed.build('remove', '--force')
  for (const place of places) {
    const known = new Set(before.get(place.name))
    const left = (await filesOf(place)).filter((path) => !known.has(path))
    // Snapshots of etcd are meant to outlive the cluster.
    const unwanted = left.filter((path) => !path.startsWith('/opt/rke/etcd-snapshots/'))
    bed.say(`${place.name} has ${left.length} files more than before; not snapshots: ${unwanted.join(' ') || 'none'}`)
  }
  bed.say(failures.length === 0 ? 'All is well' : `Failed: ${failures.join(' ')}`)
  process.exitCode = failures.length
}

await main()
