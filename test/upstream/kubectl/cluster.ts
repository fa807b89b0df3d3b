/**
 * Starts the cluster in which our kubectl and upstream's run the same command lines: a hyperkube cluster, with
 * simulated nodes and objects of every kind.
 */
import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'

import { end, launch } from '../kube-apiserver.ts'
import { HYPERKUBE } from '../ours.ts'
import { lineOf } from './scene.ts'
import { type Kubectl, type Workspace, run } from './sides.ts'
import { writeKinds } from './tables/kinds.ts'

const NODES = 4

export interface Cluster {
  /** A workspace to run lines in, with that namespace in its kubeconfig. `side`: 0 upstream's, 1 ours. */
  workspace(side: 0 | 1, namespace: string): Promise<Workspace>
  stop(): Promise<void>
}

/** `kubeconfig`: of a cluster of simulated nodes that runs already; without, one is started. */
export async function openCluster(kubeconfig?: string): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-'))
  const file = kubeconfig ?? join(folder, 'kubeconfig')
  const child = kubeconfig === undefined ? await startUp(folder, file) : undefined
  const kinds = join(folder, 'kinds')
  await writeKinds(kinds)
  let workspaces = 0
  return {
    async workspace(side, namespace) {
      const own = join(folder, `workspace-${String(workspaces++).padStart(4, '0')}`)
      await mkdir(own)
      const config = parseYaml(await readFile(file, 'utf8')) as { contexts: { context: { namespace?: string } }[] }
      for (const { context } of config.contexts) context.namespace = namespace
      await writeFile(join(own, 'kubeconfig'), stringifyYaml(config), { mode: 0o600 })
      return { namespace, kinds, folder: own, node: `node-${side}`, cache: join(folder, `cache-${side}`) }
    },
    async stop() {
      if (child !== undefined) await end(child, 'SIGTERM')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const START_MS = 300_000

async function startUp(folder: string, file: string): Promise<ChildProcess> {
  const flags = ['--data-dir', join(folder, 'data'), `--nodes=${NODES}`, '--runtime=simulated', '--secure-port=0']
  const child = await launch(HYPERKUBE, ['up', ...flags, '--kubeconfig', file], join(folder, 'log'))
  const until = realClock.elapsed() + START_MS
  while (!existsSync(file)) {
    if (child.exitCode === null && realClock.elapsed() < until) await sleep(realClock, 50)
    else {
      await end(child, 'SIGKILL')
      throw new Error(`The cluster did not start: ${await readFile(join(folder, 'log'), 'utf8')}`)
    }
  }
  return child
}

/** Objects to look at, in the namespace `shown`, settled. */
export async function furnish(kubectl: Kubectl, workspace: Workspace): Promise<void> {
  const ask = (text: string): Promise<{ code: number; out: string; err: string }> =>
    run(kubectl, lineOf(text), workspace)
  for (let tries = 0; (await ask('get nodes -o name')).out.split('\n').length <= NODES; tries++) {
    if (tries > 1000) throw new Error('The cluster did not come up')
  }
  // In a cluster that was used before.
  if ((await ask('get widgets.shown.example.com gear -n shown')).code === 0) return
  for (const text of FURNITURE) {
    const { code, err } = await ask(text)
    if (code !== 0) throw new Error(`kubectl ${text}: ${err}`)
  }
}

const FURNITURE = [
  'apply -f $M/objects.yaml',
  'wait crd/widgets.shown.example.com --for=condition=Established',
  'apply -f $M/custom.yaml',
  'rollout status deploy/web -n shown --timeout=60s',
  'wait pods -l app=web -n shown --for=condition=Ready --timeout=20s',
]
