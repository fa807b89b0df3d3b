/** Captures packets between nodes with tcpdump. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { realClock, sleep } from '#lib/clock.ts'

import type { NamespacedNode } from './namespaced-cluster.ts'

/** Captures `many` packets on the node's link with this UDP port while `while_` runs, and decodes them as VXLAN. */
export async function capture(
  { within, link }: NamespacedNode,
  port: number,
  many: number,
  while_: () => Promise<unknown>,
): Promise<readonly string[]> {
  const filter = [
    '-n',
    '-l',
    '--immediate-mode',
    '-c',
    String(many),
    '-i',
    link,
    '-T',
    'vxlan',
    'udp',
    'port',
    String(port),
  ]
  const [first = '', ...args] = [...within, 'tcpdump', ...filter]
  const child = spawn(first, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [said, heard] = ['', '']
  child.stdout.on('data', (data: Buffer) => void (said += data.toString()))
  const closed = once(child, 'close')
  const listening = new Promise<void>((resolve) => {
    child.stderr.on('data', (data: Buffer) => {
      heard += data.toString()
      if (heard.includes('listening on')) resolve()
    })
  })
  await Promise.race([listening, closed])
  await while_()
  // The packets have been sent; tcpdump prints them after a moment.
  for (let tries = 0; tries < 50 && !said.includes('VXLAN'); tries++) await sleep(realClock, 100)
  child.kill('SIGINT')
  await closed
  return said.split('\n').filter((line) => line.includes('VXLAN'))
}
