/** Tests the files of the web console over HTTP: caching, encodings and security headers. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import { MAIN, sendBytes, startConsoleBed, writePage } from './bed.ts'

describe('page of the web console', () => {
  it('is found from the root of the server', async () => {
    await using bed = await startConsoleBed()
    const root = await bed.send('GET', '/')
    assert.deepEqual([root.status, root.headers['location']], [302, '/ui/'])
    for (const path of ['/ui/', '/ui/local/pods/web-1?tab=logs', '/ui/a%2Fb']) {
      const page = await bed.send('GET', path)
      assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'])
      assert.match(page.text, /main-1\.js/)
    }
  })

  it('allows its own files only, and a style with a new nonce', async () => {
    await using bed = await startConsoleBed()
    const nonces = new Set<string>()
    for (let n = 0; n < 3; n++) {
      const { text, headers } = await bed.send('GET', '/ui/')
      const policy = String(headers['content-security-policy'])
      const [, nonce = ''] = /content="([\w-]{22})"/.exec(text) ?? []
      nonces.add(nonce)
      assert.equal(
        policy,
        `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src 'self'; ` +
          "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; " +
          "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types hyperkube",
      )
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.equal(headers['x-frame-options'], 'DENY')
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
      assert.match(String(headers['permissions-policy']), /camera=\(\)/)
    }
    assert.equal(nonces.size, 3)
  })

  it('is revalidated: an unchanged page is 304 and keeps the policy of the cached copy', async () => {
    await using bed = await startConsoleBed()
    const first = await bed.send('GET', '/ui/')
    assert.equal(first.headers['cache-control'], 'no-cache')
    const headers = { 'if-none-match': String(first.headers['etag']) }
    const second = await bed.send('GET', '/ui/', { headers })
    assert.deepEqual([second.status, second.text], [304, ''])
    assert.equal(second.headers['content-security-policy'], undefined)
  })

  it('is compressed if it is large enough', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'console-page-'))
    try {
      await using bed = await startConsoleBed({ pageFolder: writePage(folder, 5000) })
      const headers = { 'accept-encoding': 'br' }
      const page = await bed.send('GET', '/ui/', { headers })
      assert.equal(page.headers['content-encoding'], 'br')
      const text = brotliDecompressSync(page.body).toString()
      const [, nonce = ''] = /content="([\w-]{22})"/.exec(text) ?? []
      assert.ok(String(page.headers['content-security-policy']).includes(`'nonce-${nonce}'`))
      const zipped = await bed.send('GET', '/ui/', { headers: { 'accept-encoding': 'gzip' } })
      assert.match(gunzipSync(zipped.body).toString(), /main-1/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('has assets that browsers keep, in the smallest encoding', async () => {
    await using bed = await startConsoleBed()
    const get = (encoding: string): ReturnType<typeof bed.send> =>
      bed.send('GET', '/ui/assets/main-1.js', { headers: { 'accept-encoding': encoding } })
    const [br, gzip, plain] = await Promise.all([get('gzip, br'), get('gzip'), get('identity')])
    assert.deepEqual(
      [br, gzip, plain].map(({ headers }) => headers['content-encoding']),
      ['br', 'gzip', undefined],
    )
    assert.equal(brotliDecompressSync(br.body).toString(), MAIN)
    assert.equal(gunzipSync(gzip.body).toString(), MAIN)
    assert.equal(plain.text, MAIN)
    for (const { headers } of [br, gzip, plain]) {
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
      assert.equal(headers['content-type'], 'text/javascript; charset=utf-8')
      assert.equal(headers['vary'], 'Accept-Encoding')
    }
    const icon = await bed.send('GET', '/ui/icon.svg')
    assert.deepEqual(
      [icon.status, icon.headers['content-type'], icon.headers['cache-control']],
      [200, 'image/svg+xml', 'no-cache'],
    )
  })

  it('answers HEAD with the headers of GET', async () => {
    await using bed = await startConsoleBed()
    for (const path of ['/ui/assets/main-1.js', '/ui/']) {
      const [head, get] = [await bed.send('HEAD', path), await bed.send('GET', path)]
      assert.deepEqual([head.status, head.text], [200, ''])
      assert.equal(head.headers['content-length'], get.headers['content-length'])
    }
  })

  it('serves no file that is not listed, and no other method', async () => {
    await using bed = await startConsoleBed()
    const rows: readonly (readonly [method: string, path: string, status: number])[] = [
      ['GET', '/ui/assets/unknown.js', 404],
      ['GET', '/ui/assets/secret.sh', 404],
      ['GET', '/ui/assets/main-1.js.br', 404],
      ['GET', '/ui/assets/', 404],
      ['GET', '/ui/assets/../index.html', 400],
      ['GET', '/ui/assets/%2e%2e/index.html', 400],
      ['GET', '/ui/assets/..%2f..%2fetc%2fpasswd', 404],
      ['GET', '/ui/assets//main-1.js', 400],
      ['GET', '/ui/assets/main-1.js/', 404],
      ['GET', '/ui/assets/main-1.js%00', 400],
      ['GET', '/assets/main-1.js', 404],
      ['GET', '/console/', 404],
      ['POST', '/ui/', 405],
      ['PUT', '/ui/assets/main-1.js', 405],
      ['DELETE', '/', 405],
      ['OPTIONS', '/ui/', 405],
      ['TRACE', '/ui/', 405],
    ]
    const found: unknown[] = []
    for (const [method, path] of rows) found.push([method, path, (await bed.send(method, path)).status])
    assert.deepEqual(found, rows)
    const refused = await bed.send('POST', '/ui/')
    assert.equal(refused.headers['allow'], 'GET, HEAD')
  })

  it('refuses request targets that are no paths', async () => {
    await using bed = await startConsoleBed()
    const host = `Host: 127.0.0.1:${bed.port}\r\nConnection: close\r\n\r\n`
    const absolute = await sendBytes(bed.port, `GET http://127.0.0.1:${bed.port}/ui/ HTTP/1.1\r\n${host}`)
    assert.match(absolute, /^HTTP\/1\.1 400 /)
    const twice = `GET /ui/ HTTP/1.1\r\nHost: evil.example\r\n${host}`
    assert.match(await sendBytes(bed.port, twice), /^HTTP\/1\.1 400 /)
  })

  it('is 503 with the command that builds it as long as it was not built', async () => {
    await using bed = await startConsoleBed({ hasPage: false })
    const page = await bed.send('GET', '/ui/')
    assert.equal(page.status, 503)
    assert.match(page.text, /npm run console/)
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'/)
    assert.equal((await bed.send('GET', '/ui/session')).status, 200)
  })
})
