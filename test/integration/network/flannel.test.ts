/**
 * Tests flanneld on three nodes: pods reach each other over VXLAN through restarts of daemons, lost links and removed
 * nodes.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'

import { Nodes } from '#apis/core/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { whyNoNetworks } from '../proxy/network-bed.ts'
import { createFlannelBed, type FlannelNode, UPLINK } from './flannel-bed.ts'

const skip = (await whyNoNetworks()) ?? false
const PORT = 8080
/** The settings that Windows nodes need. */
const BACKEND = { Type: 'vxlan', VNI: 4096, Port: 4789 }
const LINK = 'flannel.4096'
const KILLS = 20

/**
 * Waits until the other pod sees the pod's own address, without masquerading. flanneld restores lost rules within two
 * seconds.
 */
async function reaches(from: FlannelNode, to: FlannelNode): Promise<void> {
  const wanted = `${to.name} ${from.podIp}`
  await eventually(
    async () => (await from.pod.ask('tcp', to.podIp, PORT))[0],
    (answer) => answer === wanted,
  )
}

function hasTcpdump(): boolean {
  try {
    execFileSync('tcpdump', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** One packet between nodes, as tcpdump describes it. */
async function capture({ host }: FlannelNode, while_: () => Promise<void>): Promise<string> {
  const filter = ['-n', '-c', '1', '-i', UPLINK, '-T', 'vxlan', 'udp', 'port', '4789']
  const child: ChildProcess = spawn('nsenter', [`--net=/run/netns/${host.namespace.name}`, 'tcpdump', ...filter])
  let [said, heard] = ['', '']
  child.stdout?.on('data', (data: Buffer) => (said += data.toString()))
  const listening = new Promise<void>((resolve) => {
    child.stderr?.on('data', (data: Buffer) => {
      heard += data.toString()
      if (heard.includes('listening on')) resolve()
    })
  })
  await listening
  const closed = once(child, 'close')
  await while_()
  await closed
  return said
}

test('flannel connects the pods of three nodes', { skip }, async (t) => {
  await using bed = await createFlannelBed(BACKEND, ['a', 'b', 'c'])
  const [a, b, c] = bed.nodes as readonly [FlannelNode, FlannelNode, FlannelNode]
  for (const node of bed.nodes) await bed.register(node)
  await Promise.all(bed.nodes.map((node) => node.start()))
  for (const node of bed.nodes) await node.pod.serve(node.name, PORT)

  await t.test('each pod reaches each other with its own address', async () => {
    for (const from of bed.nodes) for (const to of bed.nodes) if (from !== to) await reaches(from, to)
  })

  await t.test('subnet.env contains the ranges', async () => {
    assert.equal(
      await a.subnetFile(),
      'FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n',
    )
  })

  await t.test('packets between nodes are VXLAN with the configured VNI and port', async (each) => {
    if (!hasTcpdump()) return each.skip('tcpdump is missing')
    const packet = await capture(b, () => reaches(a, b))
    assert.match(packet, new RegExp(`> ${b.address.replaceAll('.', String.raw`\.`)}\\.4789: VXLAN, .*vni 4096`))
  })

  await t.test('a connection survives stopped and killed daemons', async () => {
    const held = await a.pod.hold(b.podIp, PORT)
    for (let count = 0; count < KILLS; count++) {
      const node = count % 2 === 0 ? a : b
      await node.stop(count % 4 < 2 ? 'SIGKILL' : 'SIGTERM')
      assert.equal(await held.ask(), `b ${a.podIp}`, 'while nobody looks after the link')
      await node.start()
      assert.equal(await held.ask(), `b ${a.podIp}`, 'after the next took it over')
    }
  })

  await t.test('removed links and routes are restored, and a connection continues', async () => {
    const held = await a.pod.hold(b.podIp, PORT)
    const inside = (...args: string[]): Promise<string> => a.host.namespace.run(args[0] ?? '', ...args.slice(1))
    for (const loss of [
      ['ip', 'route', 'flush', 'dev', LINK],
      ['ip', 'neigh', 'flush', 'dev', LINK, 'nud', 'permanent'],
      ['ip', 'link', 'set', 'dev', LINK, 'down'],
      ['ip', 'link', 'delete', 'dev', LINK],
    ]) {
      await inside(...loss)
      await reaches(a, b)
      await reaches(b, a)
      assert.equal(await held.ask(), `b ${a.podIp}`, loss.join(' '))
    }
    await inside('nft', 'delete', 'table', 'ip', 'flannel-ipv4')
    await eventually(
      () => inside('nft', 'list', 'tables'),
      (tables) => tables.includes('flannel-ipv4'),
    )
  })

  await t.test('a removed node leaves nothing behind, and is found when it returns', async () => {
    const ways = (): Promise<string> => a.host.namespace.run('ip', 'route', 'show', 'dev', LINK)
    await c.stop('SIGTERM')
    await bed.client.delete(Nodes, { name: 'c' })
    await eventually(ways, (routes) => !routes.includes('10.244.3.'))
    await bed.register(c)
    await c.start()
    await reaches(a, c)
    await reaches(c, b)
  })
})
