/**
 * Tests slices of pods on a real systemd: `node test/upstream/systemd-slices.ts` as root. In a virtual machine it
 * creates slices with limits, reloads systemd, which would reset unknown limits, checks the limits again and removes
 * the slices. Exits with 1 if a check fails. Takes some minutes: the machine is emulated.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import type { Pod } from '#apis/core/v1.ts'
import { filesOf, filesOfAmounts } from '#kubelet/cgroups/cgroup-files.ts'
import { cgroupTree } from '#kubelet/cgroups/cgroup-tree.ts'
import { slices, Systemd } from '#kubelet/cgroups/systemd-slices.ts'
import { containerOf, podOf } from '#kubelet/pods/worker.fixture.ts'

import { startMachine, whyNoMachine } from './virtual-machine.ts'

const run = promisify(execFile)
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const TOP = '/trypods.slice'
const UNIT = 'trypods-burstable-poda_b.slice'
const PATHS = [TOP, `${TOP}/trypods-burstable.slice`, `${TOP}/trypods-burstable.slice/${UNIT}`] as const
const POD: Pod = {
  ...podOf({
    containers: [
      containerOf('c', { resources: { limits: { cpu: '250m', memory: '16Mi' }, requests: { cpu: '100m' } } }),
    ],
  }),
  status: {},
}
const EXPECTED = {
  [PATHS[2]]: { 'cpu.weight': '17', 'cpu.max': '25000 100000', 'memory.max': '16777216', 'pids.max': '100' },
  [TOP]: { 'cpu.weight': '174', 'memory.max': '1073741824', 'pids.max': '1000' },
}

/** On the machine with systemd. */
async function judge(): Promise<number> {
  let failures = 0
  const check = (what: string, found: string, expected: string): void => {
    if (found !== expected) failures++
    say(`${found === expected ? 'ok  ' : 'FAIL'} ${what}: ${found}`)
  }
  using systemd = new Systemd(2)
  const tree = slices(cgroupTree('/sys/fs/cgroup', 2), systemd)
  await tree.make(PATHS[2])
  for (const file of filesOf(POD, 2, { pidsLimit: 100 })) await tree.write(PATHS[2], file)
  for (const file of filesOfAmounts({ cpu: '2', memory: '1Gi', pid: '1000' }, 2, [])) await tree.write(TOP, file)
  await run('systemctl', ['daemon-reload'])
  for (const [path, files] of Object.entries(EXPECTED)) {
    for (const [name, value] of Object.entries(files)) {
      check(`${path}/${name}`, (await readFile(`/sys/fs/cgroup${path}/${name}`, 'utf8')).trim(), value)
    }
  }
  const { stdout } = await run('systemctl', ['show', UNIT, '-p', 'MemoryMax,CPUQuotaPerSecUSec,ActiveState'])
  check(
    'systemctl',
    stdout.trim().split('\n').sort().join(' '),
    'ActiveState=active CPUQuotaPerSecUSec=250ms MemoryMax=16777216',
  )
  for (const path of PATHS.toReversed()) await tree.remove(path)
  const left = await run('sh', [
    '-c',
    'systemctl list-units --all "trypods*" --no-legend; ls -d /sys/fs/cgroup/trypods* || true',
  ])
  check('what is left', left.stdout.trim(), '')
  return failures === 0 ? 0 : 1
}

async function main(): Promise<number> {
  const reason = whyNoMachine()
  if (reason !== undefined) return (say(`not run: ${reason}`), 0)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-slices-'))
  try {
    const bundle = join(folder, 'judge.mjs')
    const flags = ['--bundle', '--platform=node', '--format=esm', `--outfile=${bundle}`, '--log-level=error']
    await run('npx', ['esbuild', import.meta.filename, ...flags])
    const files = { [bundle]: '/opt/judge.mjs', [process.execPath]: '/opt/node' }
    await using machine = await startMachine({ folder: join(folder, 'machine'), files })
    const said = await machine.shell('/opt/node /opt/judge.mjs --inside || echo FAIL', { timeoutMs: 300_000 })
    say(said.trim())
    return said.includes('FAIL') ? 1 : 0
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await (process.argv.includes('--inside') ? judge() : main())
