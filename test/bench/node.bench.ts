/** Benchmarks an idle `hyperkube node agent` that supervises the processes of a worker. Linux. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { AgentServer } from '../integration/supervisor/agent-server.ts'
import { endAllIn, SETTINGS, wholeIn, writeStandIns } from '../integration/supervisor/stand-ins.ts'
import { end } from '../upstream/kube-apiserver.ts'
import type { Bench } from './bench.ts'
import { pause } from './http-load.ts'
import { installed, proportionalMb, usageOf } from './server-under-test.ts'
import { figure } from './table.ts'

const { NODE_SECONDS = '120' } = process.env
/** Five looks, and what a start leaves behind is gone. */
const SETTLE_MS = 50_000

export const bench: Bench = {
  about: `supervisor and agent in one process, a server, processes that do nothing but live, for ${NODE_SECONDS} s`,
  async run() {
    await using closing = new AsyncDisposableStack()
    const root = await mkdtemp(join(tmpdir(), 'hyperkube-node-bench-'))
    closing.defer(() => rm(root, { recursive: true, force: true }))
    closing.defer(() => endAllIn(root))
    await writeStandIns(root)
    const server = closing.use(new AgentServer())
    await server.start()
    server.plan = [200, JSON.stringify({ node: SETTINGS })]
    const flags = [`--root=${root}`, `--server=${server.url}`, `--ca-checksum=${server.caChecksum}`]
    const health = ['--kubelet-health=', '--kube-proxy-health=']
    const env = { ...process.env, CATTLE_TOKEN: server.token }
    const child = spawn(await installed(), ['node', 'agent', ...flags, ...health], { stdio: 'ignore', env })
    closing.defer(() => end(child, 'SIGTERM'))
    const pid = child.pid ?? 0
    await wholeIn(root)
    await pause(SETTLE_MS)
    const [startMs, before] = [performance.now(), await usageOf(pid)]
    await pause(Number(NODE_SECONDS) * 1000)
    const after = await usageOf(pid)
    const share = (100 * (after.cpuMs - before.cpuMs)) / (performance.now() - startMs)
    const rows = [
      ['CPU, % of one core', figure(share), '0.2'],
      ['resident MB', figure(after.residentMb), '60'],
      ['of it its own (PSS), MB', figure(await proportionalMb([pid])), '60'],
      ['of it without file pages, MB', figure(after.anonymousMb), ''],
    ]
    return [{ title: 'a node at rest', columns: ['', 'measured', 'budget'], rows }]
  },
}
