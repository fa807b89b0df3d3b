/** Tests shell completion in a real bash: its script runs kubectl, which queries a server. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const PROGRAM = resolve(import.meta.dirname, '../../../bin/hyperkube')
const SCRIPT = resolve(import.meta.dirname, '../../../src/kubectl/completion/scripts/kubectl.bash')
const hasBash = spawnSync('bash', ['--version']).status === 0

let plane: ControlPlane
let folder = ''

before(async () => {
  plane = await startControlPlane()
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-completion-'))
  await writeFile(join(folder, 'kubeconfig'), plane.kubeconfig)
  await mkdir(join(folder, 'work', 'inside'), { recursive: true })
  for (const name of ['pod.yaml', 'pod.json', 'pod.txt']) await writeFile(join(folder, 'work', name), '')
  // bin/hyperkube is kubectl when it is called so.
  await symlink(PROGRAM, join(folder, 'kubectl'))
})

after(async () => {
  await plane.stop()
  await rm(folder, { recursive: true, force: true })
})

/** A script that prints bash's completions of a line with the cursor at its end. */
const ASK = `
source "$SCRIPT"
shopt -s expand_aliases
alias k='kubectl --namespace=kube-system'
COMP_LINE=$LINE COMP_POINT=\${#LINE} COMP_TYPE=9
__start_kubectl
printf '%s\\n' "\${COMPREPLY[@]}"
`

function complete(line: string, more: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const env = {
    PATH: `${folder}:${process.env['PATH'] ?? ''}`,
    HOME: folder,
    KUBECONFIG: join(folder, 'kubeconfig'),
    COLUMNS: '100',
    SCRIPT,
    LINE: line,
    ...more,
  }
  return new Promise((done, fail) => {
    execFile('bash', ['--norc', '-c', ASK], { env, cwd: join(folder, 'work') }, (error, stdout) =>
      error === null ? done(stdout.split('\n').filter(Boolean)) : fail(new Error('bash failed', { cause: error })),
    )
  })
}

describe('kubectl completion in bash', { skip: hasBash ? false : 'there is no bash' }, () => {
  it('completes commands with descriptions', async () => {
    assert.deepEqual(await complete('kubectl expl'), ['explain'])
    const several = await complete('kubectl api-')
    assert.deepEqual(
      several.map((line) => /^\S+/.exec(line)?.[0]),
      ['api-resources', 'api-versions'],
    )
    assert.match(several[0] ?? '', /^api-resources +\(.+\)$/)
    assert.deepEqual(await complete('kubectl rollout stat'), ['status'])
  })

  it('completes flags and their values', async () => {
    assert.deepEqual(await complete('kubectl get pods --show-l'), ['--show-labels'])
    assert.deepEqual(await complete('kubectl get pods --namespace=kube-s'), ['kube-system'])
    assert.deepEqual(await complete('kubectl get pods -n kube-p'), ['kube-public'])
    assert.deepEqual(await complete('kubectl get pods -o jsonpath-'), ['jsonpath-as-json', 'jsonpath-file'])
  })

  it('completes resource types and object names', async () => {
    assert.deepEqual(await complete('kubectl get deploy'), ['deployments.apps'])
    assert.deepEqual(await complete('kubectl get ns/kube-sys'), ['ns/kube-system'])
    assert.deepEqual(await complete('kubectl describe namespaces defa'), ['default'])
  })

  it('completes manifest files and folders', async () => {
    assert.deepEqual((await complete('kubectl apply -f ')).sort(), ['inside', 'pod.json', 'pod.yaml'])
  })

  it('evaluates aliases, variables and quotes without running their commands', async () => {
    assert.deepEqual(await complete('k get cm extension-'), ['extension-apiserver-authentication'])
    assert.deepEqual(await complete('kubectl get "name', {}), ['namespaces'])
    assert.deepEqual(await complete('kubectl --kubeconfig=$FILE get ns defa', { FILE: join(folder, 'kubeconfig') }), [
      'default',
    ])
    assert.deepEqual(await complete('kubectl get $(touch ran) '), [])
    assert.deepEqual((await complete('kubectl apply -f r')).sort(), [])
  })
})
