/** Starts kwok, which simulates nodes and pods through the API, with upstream's control plane. */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'

import { startManager } from './components.ts'
import { goProgram } from './go-program.ts'
import { end, launch } from './kube-apiserver.ts'
import { writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'
import { type Reference, startReference } from './reference.ts'

const VERSION = 'v0.8.0'
const KWOK = `sigs.k8s.io/kwok/cmd/kwok@${VERSION}`
/** The stages of kwok's releases: nodes and pods become ready as fast as possible. */
const STAGES = ['node/fast/node-initialize', 'node/heartbeat-with-lease/node-heartbeat-with-lease', 'pod/fast/*']

/** The flags that kwokctl sets with --disable-qps-limits, as kwok's benchmark does. */
const UNLIMITED_SERVER = [
  '--max-requests-inflight=0',
  '--max-mutating-requests-inflight=0',
  '--enable-priority-and-fairness=false',
]
const UNLIMITED = ['--kube-api-qps=100000', '--kube-api-burst=100000']

/** All five programs, with `pids` of all. */
export async function startKwok(folder: string): Promise<Reference> {
  const reference = await startReference(folder, UNLIMITED_SERVER)
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), reference)
  const programs = await upstreamPrograms(['kube-scheduler'], (line) => process.stderr.write(`${line}\n`))
  const kwok = goProgram(KWOK)
  const stages = STAGES.flatMap((name) => globSync(join(stageFolder(), `${name}.yaml`)))
    .filter((file) => !file.endsWith('kustomization.yaml'))
    .map((file) => `--config=${file}`)
  const started = [
    await startManager(folder, kubeconfig, { make: "upstream's", flags: UNLIMITED }),
    await launch(
      programs['kube-scheduler'],
      [`--kubeconfig=${kubeconfig}`, '--secure-port=0', '--leader-elect=false', ...UNLIMITED],
      join(folder, 'kube-scheduler.log'),
    ),
    await launch(
      kwok,
      [`--kubeconfig=${kubeconfig}`, '--manage-all-nodes', '--node-lease-duration-seconds=40', ...stages],
      join(folder, 'kwok.log'),
    ),
  ]
  return {
    ...reference,
    pids: [...reference.pids, ...started.map(({ pid }) => pid ?? 0)],
    async stop() {
      await Promise.all(started.map((child) => end(child, 'SIGKILL')))
      await reference.stop()
    },
  }
}

function stageFolder(): string {
  const { stdout } = spawnSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' })
  return join(stdout.trim(), `sigs.k8s.io/kwok@${VERSION}`, 'kustomize/stage')
}
