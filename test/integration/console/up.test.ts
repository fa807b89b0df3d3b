/** Tests the console of `hyperkube up` as a separate process: link, API, upgrades, kill and restart. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

import { eventually } from '#kits/lib/eventually.ts'

import { logInTo, ownPage, sendTo } from './bed.ts'
import { dataDir, dir, env, HYPERKUBE, linkIn, start, up } from './up-process.ts'

/** The first message of a watch over a WebSocket. */
function watchOnce(port: number, cookie: string, more = ''): Promise<string> {
  const url = `ws://127.0.0.1:${port}/k8s/clusters/local/api/v1/namespaces?watch=1${more}`
  const options = { headers: { cookie, origin: `http://127.0.0.1:${port}` } } as unknown as string[]
  const socket = new WebSocket(url, options)
  return new Promise((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => {
      socket.close()
      resolve(String(data))
    })
    socket.addEventListener('error', () => reject(new Error('The WebSocket failed')))
  })
}

/** The link in the file after another one was used. */
function nextLink(used: string): Promise<string> {
  return eventually(
    () => readFileSync(join(dataDir, 'console-link'), 'utf8').trim(),
    (link) => link.includes('code=') && link !== used,
  )
}

describe('console of hyperkube up', () => {
  it('logs in by the printed link, and serves the API with watches and upgrades', async () => {
    const cluster = up('--console-port=0')
    const { link, port } = linkIn(await cluster.line(/^Console: /))
    const file = join(dataDir, 'console-link')
    assert.equal(readFileSync(file, 'utf8'), `${link}\n`)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const cookie = await logInTo(port, link)
    await nextLink(link)
    const headers = { ...ownPage(port), cookie }
    const session = JSON.parse((await sendTo(port, 'GET', '/ui/session', { headers })).text) as Record<string, any> // eslint-disable-line @typescript-eslint/no-explicit-any
    assert.deepEqual([session['mode'], session['user'].name], ['one-cluster', 'kubernetes-admin'])
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'from-console' } })
    const path = '/k8s/clusters/local/api/v1/namespaces/default/configmaps'
    const made = await sendTo(port, 'POST', path, { headers: { ...headers, 'content-type': 'application/json' }, body })
    assert.equal(made.status, 201, made.text)
    const listed = await sendTo(port, 'GET', path, { headers: { ...headers, 'accept-encoding': 'gzip' } })
    assert.equal(listed.status, 200)
    assert.match(await watchOnce(port, cookie), /"type":"ADDED"/)
    assert.match(await watchOnce(port, cookie, '&hk-as=Table'), /"kind":"Table".*"columnDefinitions":\[/)
    const masked = await sendTo(port, 'GET', path, { headers: { ...headers, 'impersonate-user': 'nobody' } })
    assert.equal(masked.status, 200, 'the header of the browser does not count')
    await cluster.stop('SIGTERM')
    assert.ok(!existsSync(file))
    assert.doesNotMatch(cluster.output(), /Failed to/)
  })

  it('continues sessions after it was killed, and makes a new link', async () => {
    const first = up('--console-port=0')
    const before = linkIn(await first.line(/^Console: /))
    const cookie = await logInTo(before.port, before.link)
    const stored = await nextLink(before.link)
    await first.stop('SIGKILL')
    const second = up(`--console-port=${before.port}`)
    const now = linkIn(await second.line(/^Console: /))
    assert.equal(now.port, before.port)
    const headers = { cookie }
    assert.equal((await sendTo(now.port, 'GET', '/k8s/clusters/local/version', { headers })).status, 200)
    for (const old of [before.link, stored]) {
      const { pathname, search } = new URL(old)
      assert.equal((await sendTo(now.port, 'GET', pathname + search)).status, 401)
    }
    assert.match(await watchOnce(now.port, cookie), /"type":"ADDED"/)
    await second.stop('SIGTERM')
  })

  it('is in the JSON line and in "hyperkube status"', async () => {
    const cluster = up('--console-port=0', '-o', 'json')
    const { consoleUrl } = JSON.parse(await cluster.line(/^\{/)) as { consoleUrl: string }
    const run = promisify(execFile)
    const json = await run(HYPERKUBE, ['status', `--data-dir=${dataDir}`, '-o', 'json'], { env })
    assert.equal((JSON.parse(json.stdout) as { consoleUrl: string }).consoleUrl, consoleUrl)
    const text = await run(HYPERKUBE, ['status', `--data-dir=${dataDir}`], { env })
    assert.ok(text.stdout.includes(consoleUrl))
    await cluster.stop('SIGTERM')
  })

  for (const flag of ['--console=false', '--console-port=-1']) {
    it(`does not start with ${flag}`, async () => {
      const cluster = up(flag)
      await cluster.line(/^Try: /)
      assert.doesNotMatch(cluster.output(), /^Console/m)
      assert.ok(!existsSync(join(dataDir, 'console-link')))
      await cluster.stop('SIGTERM')
    })
  }
})

describe('hyperkube console', () => {
  it('serves the console for a context of a kubeconfig', async () => {
    const cluster = up('--console=false')
    await cluster.line(/^Try: /)
    const program = start('console', `--kubeconfig=${dir}/config`, '--context=hyperkube', '--port=0')
    const { link, port } = linkIn(await program.line(/^Console of "hyperkube": /))
    const cookie = await logInTo(port, link)
    const headers = { ...ownPage(port), cookie }
    const session = JSON.parse((await sendTo(port, 'GET', '/ui/session', { headers })).text) as Record<string, any> // eslint-disable-line @typescript-eslint/no-explicit-any
    assert.deepEqual(session['user'].groups, ['system:masters', 'system:authenticated'])
    assert.equal(session['clusters'][0].displayName, 'hyperkube')
    assert.equal((await sendTo(port, 'GET', '/k8s/clusters/local/version', { headers })).status, 200)
    assert.match(await watchOnce(port, cookie), /"type":"ADDED"/)
    const other = linkIn(await program.line(/^Link for another browser: /))
    assert.ok((await logInTo(port, other.link)).length > 40)
    await program.stop('SIGINT')
    await cluster.stop('SIGTERM')
  })

  it('names a problem of the kubeconfig', async () => {
    const program = start('console', `--kubeconfig=${dir}/nothing`)
    await once(program.child, 'close')
    assert.equal(program.child.exitCode, 1)
    assert.match(program.output(), /^Error: stat .*nothing: no such file or directory/)
  })
})
