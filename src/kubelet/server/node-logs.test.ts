import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'

import { createVirtualClock } from '#lib/clock.ts'
import { createLoopbackClient } from '#lib/http/loopback.ts'

import { createKubeletApi, type KubeletApiOptions } from './kubelet-api.ts'

const root = mkdtempSync(join(tmpdir(), 'node-logs-'))
const logs = join(root, 'log')
before(() => {
  mkdirSync(join(logs, 'pods', 'default_web_u1'), { recursive: true })
  writeFileSync(join(root, 'secret'), 'root:x:0:0\n')
  writeFileSync(join(logs, 'syslog'), 'line one\nline two\n')
  writeFileSync(join(logs, 'page.html'), '<script>alert(1)</script>')
  writeFileSync(join(logs, 'old.gz'), gzipSync('old'))
  writeFileSync(join(logs, 'wtmp'), Buffer.from([0, 1, 2]))
  writeFileSync(join(logs, 'empty'), '')
  writeFileSync(join(logs, 'a b?#:<&>"\''), 'odd')
  writeFileSync(join(logs, 'pods', 'default_web_u1', '0.log'), 'of a pod\n')
  symlinkSync('pods/default_web_u1/0.log', join(logs, 'inside'))
  symlinkSync(join(logs, 'pods'), join(logs, 'folder'))
  symlinkSync('/', join(logs, 'out'))
  symlinkSync('../secret', join(logs, 'secret'))
  symlinkSync(`${logs}-beside`, join(logs, 'beside'))
  symlinkSync('/dev/zero', join(logs, 'zero'))
  symlinkSync('nowhere', join(logs, 'dangling'))
  mkdirSync(`${logs}-beside`)
  writeFileSync(join(`${logs}-beside`, 'x'), 'x')
  execFileSync('mkfifo', [join(logs, 'pipe')])
})
after(() => rmSync(root, { recursive: true }))

interface Page {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
}

/** Without authentication, which other tests cover. */
async function get(
  path: string,
  more: { method?: string; headers?: Record<string, string> } = {},
  options: Partial<KubeletApiOptions> = { logDirectory: logs },
): Promise<Page> {
  const clock = createVirtualClock()
  const access = { authorize: () => Promise.resolve(undefined) } as unknown as KubeletApiOptions['access']
  const serve = createKubeletApi({ clock, access, ...options } as KubeletApiOptions)
  const http = createLoopbackClient({ serve, clock, identity: undefined })
  const { status, headers, body } = await http.request({ url: 'https://kubelet', path, ...more })
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece)
  return { status, headers, text: Buffer.concat(pieces).toString() }
}

describe('/logs/ of the kubelet', () => {
  it('lists a directory as Go does', async () => {
    const { status, headers, text } = await get('/logs/')
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(
      text,
      `<!doctype html>
<meta name="viewport" content="width=device-width">
<pre>
<a href="./a%20b%3F%23:%3C&%3E%22%27">a b?#:&lt;&amp;&gt;&#34;&#39;</a>
<a href="beside">beside</a>
<a href="dangling">dangling</a>
<a href="empty">empty</a>
<a href="folder">folder</a>
<a href="inside">inside</a>
<a href="old.gz">old.gz</a>
<a href="out">out</a>
<a href="page.html">page.html</a>
<a href="pipe">pipe</a>
<a href="pods/">pods/</a>
<a href="secret">secret</a>
<a href="syslog">syslog</a>
<a href="wtmp">wtmp</a>
<a href="zero">zero</a>
</pre>
`,
    )
  })

  it('sends files, also through links within the directory', async () => {
    for (const [path, type, text] of [
      ['/logs/syslog', 'text/plain; charset=utf-8', 'line one\nline two\n'],
      ['/logs/empty', 'text/plain; charset=utf-8', ''],
      ['/logs/page.html', 'text/plain; charset=utf-8', '<script>alert(1)</script>'],
      ['/logs/wtmp', 'application/octet-stream', '\0\u0001\u0002'],
      ['/logs/inside', 'text/plain; charset=utf-8', 'of a pod\n'],
      ['/logs/folder/default_web_u1/0.log', 'text/plain; charset=utf-8', 'of a pod\n'],
      ['/logs/a%20b%3F%23:%3C&%3E%22%27', 'text/plain; charset=utf-8', 'odd'],
      // As in upstream while enableSystemLogQuery is off.
      ['/logs/syslog?query=kubelet', 'text/plain; charset=utf-8', 'line one\nline two\n'],
    ] as const) {
      const page = await get(path)
      assert.deepEqual([page.status, page.headers['content-type'], page.text], [200, type, text], path)
      assert.equal(page.headers['content-length'], String(Buffer.byteLength(text)))
    }
    assert.equal((await get('/logs/old.gz')).headers['content-type'], 'application/x-gzip')
  })

  it('sends a range of a file', async () => {
    const part = async (range: string): Promise<unknown[]> => {
      const { status, headers, text } = await get('/logs/syslog', { headers: { range } })
      return [status, headers['content-range'], text]
    }
    assert.deepEqual(await part('bytes=5-7'), [206, 'bytes 5-7/18', 'one'])
    assert.deepEqual(await part('bytes=-4'), [206, 'bytes 14-17/18', 'two\n'])
    assert.deepEqual(await part('bytes=9-'), [206, 'bytes 9-17/18', 'line two\n'])
    assert.deepEqual(await part('bytes=18-'), [416, 'bytes */18', 'invalid range: failed to overlap\n'])
    assert.deepEqual(await part('lines=1-2'), [200, undefined, 'line one\nline two\n'])
  })

  it('sends no file outside of the directory', async () => {
    for (const path of [
      '/logs/secret',
      '/logs/out/etc/passwd',
      '/logs/out/',
      '/logs/beside/x',
      '/logs/beside/',
      '/logs/zero',
      '/logs/pipe',
      '/logs/../secret',
      '/logs/%2e%2e/secret',
      '/logs/..%2fsecret',
      '/logs/pods/../../secret',
      '/logs/%2fetc/passwd',
      '/logs/syslog%00',
      '/logs/..\\secret',
    ]) {
      const { status, text } = await get(path)
      assert.ok([403, 404].includes(status), `${path}: ${status}`)
      assert.match(text, /^(403 Forbidden|404 page not found)\n$/, path)
    }
  })

  it('redirects to the path with or without a trailing slash', async () => {
    for (const [path, location] of [
      ['/logs', 'logs/'],
      ['/logs/pods', 'pods/'],
      ['/logs/syslog/', '../syslog'],
    ] as const) {
      const { status, headers } = await get(path)
      assert.deepEqual([status, headers['location']], [301, location], path)
    }
  })

  it('answers other methods with 405 and missing files with 404, and is disabled without a directory', async () => {
    assert.equal((await get('/logs/syslog', { method: 'POST' })).status, 405)
    assert.equal((await get('/logs/none')).status, 404)
    assert.equal((await get('/logs/dangling')).status, 404)
    const disabled = await get('/logs/syslog', {}, {})
    assert.deepEqual([disabled.status, disabled.text], [405, 'logs endpoint is disabled.\n'])
    const without = await get('/logs/syslog', {}, { logDirectory: logs, hasDebugging: false })
    assert.deepEqual([without.status, without.text], [405, 'Debug endpoints are disabled.\n'])
  })
})
