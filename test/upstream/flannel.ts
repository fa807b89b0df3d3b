/**
 * Runs flannel's own daemon on one node and ours on two: `node test/upstream/flannel.ts`, as root, with Go to build it.
 * The three nodes and their pods are network namespaces. The backends are VXLAN (1/8472 and 4096/4789), VXLAN with
 * DirectRouting, and host-gw. With each of them pods must reach each other without address translation, and both
 * daemons must handle nodes that leave and return. Arguments select backends. Exits with 0 only if all steps passed,
 * and leaves nothing.
 */
import { Nodes } from '#apis/core/v1.ts'

import { createFlannelBed, type FlannelBed, type FlannelNode } from '../integration/network/flannel-bed.ts'
import { buildFlannel } from './go-program.ts'
import { Shown, untilSo } from './shown.ts'

const PORT = 8080
const BACKENDS = {
  'vxlan 1/8472': { Type: 'vxlan' },
  'vxlan 4096/4789': { Type: 'vxlan', VNI: 4096, Port: 4789 },
  'vxlan with DirectRouting': { Type: 'vxlan', DirectRouting: true },
  'host-gw': { Type: 'host-gw' },
} as const

const shown = new Shown()
const theirs = buildFlannel()

async function reach(from: FlannelNode, to: FlannelNode): Promise<number> {
  return untilSo(
    async () => (await from.pod.ask('tcp', to.podIp, PORT))[0],
    (answer) => answer === `${to.name} ${from.podIp}`,
    30,
  )
}

async function allReach(nodes: readonly FlannelNode[]): Promise<string> {
  let slowest = 0
  for (const from of nodes) for (const to of nodes) if (from !== to) slowest = Math.max(slowest, await reach(from, to))
  return `${nodes.length * (nodes.length - 1)} ways, the last after ${slowest.toFixed(1)} s`
}

async function tryBackend(name: string, backend: object): Promise<void> {
  const programs = { upstream: [theirs] }
  await using bed: FlannelBed = await createFlannelBed(backend, ['ours', 'upstream', 'also-ours'], { programs })
  const { nodes } = bed
  const [ours, upstream, late] = nodes as readonly [FlannelNode, FlannelNode, FlannelNode]
  for (const node of [ours, upstream]) await bed.register(node)
  await Promise.all([ours, upstream].map((node) => node.start()))
  for (const node of nodes) await node.pod.serve(node.name, PORT)
  await shown.step(`${name}: pods of ours and upstream's reach each other`, () => allReach([ours, upstream]))
  await shown.step(`${name}: a node that comes later is reached by both`, async () => {
    await bed.register(late)
    await late.start()
    return await allReach(nodes)
  })
  await shown.step(`${name}: a connection between them lives through either's end`, async () => {
    const held = await ours.pod.hold(upstream.podIp, PORT)
    for (const node of [ours, upstream]) {
      await node.stop('SIGKILL')
      await node.start()
      const said = await held.ask()
      if (said !== `upstream ${ours.podIp}`) throw new Error(said)
    }
    return 'each killed once'
  })
  await shown.step(`${name}: of a node that has gone nothing stays with ours`, async () => {
    await upstream.stop('SIGKILL')
    await bed.client.delete(Nodes, { name: upstream.name })
    const ways = (): Promise<string> => ours.host.namespace.run('ip', 'route', 'show')
    return `${(await untilSo(ways, (routes) => !routes.includes(upstream.subnet), 15)).toFixed(1)} s`
  })
}

const asked = process.argv.slice(2)
for (const [name, backend] of Object.entries(BACKENDS)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  await shown.step(`${name}: all of it`, async () => {
    await tryBackend(name, backend)
    return ''
  })
}
process.exitCode = shown.end()
