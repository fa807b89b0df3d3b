/** Tests signals to a kubectl process. As in upstream, commands that wait exit with 1, and the signal kills others. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { type Answer, startHostileServer } from './hostile-server.ts'

const HYPERKUBE = join(import.meta.dirname, '..', '..', '..', 'bin', 'hyperkube')
const POD = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'one', namespace: 'default', uid: '1', resourceVersion: '1' },
  spec: { containers: [{ name: 'main', image: 'image' }] },
  status: { phase: 'Running' },
}
const LIST = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [POD] }

let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-signals-'))
})

after(() => rm(folder, { recursive: true, force: true }))

/** Resolves when it is there and waits: watches and logs never end. */
function patientServer(onWait: () => void): Answer {
  return ({ url = '' }, response) => {
    response.setHeader('content-type', 'application/json')
    if (!/[?&](?:watch|follow)=true/.test(url)) {
      return void response.end(JSON.stringify(/\/pods\/one/.test(url) ? POD : LIST))
    }
    response.flushHeaders()
    onWait()
  }
}

/** How it ends: a code, or the signal that it died of. */
async function interrupted(line: string, signal: NodeJS.Signals): Promise<number | NodeJS.Signals> {
  const waiting = Promise.withResolvers<void>()
  const server = await startHostileServer(patientServer(waiting.resolve))
  const args = ['kubectl', '--server', server.url, ...line.split(' ')]
  const child = spawn(HYPERKUBE, args, {
    env: { PATH: process.env['PATH'], HOME: folder, XDG_CACHE_HOME: process.env['XDG_CACHE_HOME'] },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  child.stdout.on('data', (chunk: Buffer) => {
    if (String(chunk).startsWith('Starting to serve')) waiting.resolve()
  })
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  await Promise.race([waiting.promise, ended])
  child.kill(signal)
  const [code, died] = await ended
  await server.close()
  return code ?? died ?? -1
}

describe('kubectl on a signal', { skip: process.platform === 'win32' && 'there are none' }, () => {
  for (const [line, signal, end] of [
    ['get pods -w', 'SIGINT', 1],
    ['get pods -w', 'SIGTERM', 1],
    ['wait pod/one --for=condition=Never', 'SIGINT', 1],
    ['wait pod/one pod/one --for=condition=Never', 'SIGTERM', 1],
    ['delete pod one', 'SIGINT', 1],
    ['logs -f one', 'SIGINT', 1],
    ['get --raw /api/v1/pods?watch=true', 'SIGINT', 'SIGINT'],
    ['get --raw /api/v1/pods?watch=true', 'SIGTERM', 'SIGTERM'],
    ['proxy --port=0', 'SIGINT', 'SIGINT'],
  ] as const)
    it(`ends "${line}" on ${signal}, with exit status ${end}`, async () => {
      assert.equal(await interrupted(line, signal), end)
    })
})
