/**
 * Compares our kubectl at a terminal with upstream's: `node test/upstream/kubectl-terminal.ts [--only TEXT] [--ours]
 * [--kubeconfig FILE]`. Keys are sent to tmux, and the screen must match `kubectl-terminal/scenes.ts` with both. As
 * root, with tmux, vi and containerd (`apt-get install tmux vim-tiny containerd`), against `hyperkube up` with
 * containers. Exits with 1 on a difference; leaves nothing on the machine.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import { type Cluster, startRealCluster } from '../conformance/cluster.ts'
import { IMAGE, play, SCENES } from './kubectl-terminal/scenes.ts'
import { openTerminal } from './kubectl-terminal/terminal.ts'
import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, ours: { type: 'boolean' }, kubeconfig: { type: 'string' } },
})
const say = (line: string): void => void process.stderr.write(`${line}\n`)
const run = promisify(execFile)

const POD = JSON.stringify({
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'terminal' },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: IMAGE,
            imagePullPolicy: 'Never',
            command: ['/bin/sh', '-c', 'i=0; while sleep 0.2; do i=$((i+1)); [ $i -gt 5 ] || echo line $i; done'],
          },
        ],
      },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'edited' }, data: { colour: 'red' } },
  ],
})

/** How many scenes went otherwise. */
async function watch(kubectl: string, folder: string, kubeconfig: string): Promise<number> {
  const bin = join(folder, 'bin')
  await mkdir(bin, { recursive: true })
  await symlink(kubectl, join(bin, 'kubectl'))
  const { PATH = '' } = process.env
  const env = {
    PATH: `${bin}:${PATH}`,
    HOME: folder,
    KUBECONFIG: kubeconfig,
    TERM: 'screen',
    EDITOR: 'vi',
    PS1: '[$?]$ ',
  }
  const ask = async (...args: string[]): Promise<void> => void (await run(join(bin, 'kubectl'), args, { env }))
  const made = run(join(bin, 'kubectl'), ['create', '-f', '-'], { env })
  made.child.stdin?.end(POD)
  await made
  await ask('wait', 'pod/terminal', '--for=condition=Ready', '--timeout=120s')
  let otherwise = 0
  for (const scene of SCENES.filter(({ name }) => name.includes(options.only ?? ''))) {
    await using terminal = await openTerminal(folder, env, [100, 30])
    try {
      await terminal.sees(/\[0\]\$/)
      await play(terminal, scene)
      say(`  ok  ${scene.name}`)
    } catch (error) {
      otherwise++
      say(`  NO  ${scene.name}\n${(error as Error).message}`)
    }
  }
  await ask('delete', 'pod/terminal', 'configmap/edited')
  return otherwise
}

/** One that is there already has the image, and keeps it. */
function openCluster(folder: string): Promise<Pick<Cluster, 'kubeconfig'> & AsyncDisposable> {
  const { kubeconfig } = options
  if (kubeconfig === undefined) return startRealCluster(folder, 1, ['e2e-busybox', 'pause'])
  return Promise.resolve({ kubeconfig, [Symbol.asyncDispose]: () => Promise.resolve() })
}

async function main(): Promise<number> {
  const { kubectl } = await upstreamPrograms(['kubectl'], say)
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-terminal-'))
  const sides = [['upstream', kubectl] as const, ['ours', HYPERKUBE] as const].slice(options.ours === true ? 1 : 0)
  let otherwise = 0
  {
    await using cluster = await openCluster(folder)
    for (const [name, program] of sides) {
      say(`${name}:`)
      otherwise += await watch(program, join(folder, name), cluster.kubeconfig)
    }
  }
  await rm(folder, { recursive: true, force: true })
  return otherwise === 0 ? 0 : 1
}

process.exitCode = await main()
