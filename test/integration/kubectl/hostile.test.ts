/**
 * Tests kubectl with malicious servers and files: its output contains no terminal control sequences, and every command
 * ends with an error.
 */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { type Answer, askHostile, EVIL_POD, EVIL_STATUS, EVIL_TABLE, json, type Outcome } from './hostile-server.ts'

let folder: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-hostile-'))
})

after(() => rm(folder, { recursive: true, force: true }))

function kubectl(args: readonly string[], answer: Answer = json(200, EVIL_POD)): Promise<Outcome> {
  return askHostile(folder, args, answer)
}

/** Whether a terminal would do something with it. */
function hasControls(text: string): boolean {
  return text.includes('\u001b') || text.includes('\r')
}

void test('kubectl escapes cells of server tables for the terminal', async () => {
  const { out } = await kubectl(['get', 'pods', '--show-labels', '--no-headers'], json(200, EVIL_TABLE))
  assert.equal(hasControls(out), false)
  assert.match(out, /^pod\^\[\[2Jevil/)
})

void test('kubectl escapes custom columns and descriptions for the terminal', async () => {
  const columns = await kubectl(['get', 'pods', 'x', '-o', 'custom-columns=N:.metadata.name'])
  assert.match(columns.out, /^N\npod\^\[\[2Jevil\^\[\]0;title/)
  const described = await kubectl(['describe', 'pods', 'x'])
  assert.match(described.out, /^Name: +pod\^\[\[2Jevil/)
  for (const { out } of [columns, described]) assert.equal(hasControls(out), false)
})

void test('kubectl -o yaml prints escape sequences in escaped form', async () => {
  const { out } = await kubectl(['get', 'pods', 'x', '-o', 'yaml'])
  assert.equal(hasControls(out), false)
})

void test('kubectl escapes error messages of the server for the terminal', async () => {
  const { code, err } = await kubectl(['get', 'pods'], json(403, EVIL_STATUS))
  assert.equal(code, 1)
  assert.equal(hasControls(err), false)
  assert.match(err, /^Error from server \(Forbidden\): no\^\[\[2Jevil/)
})

void test('kubectl escapes warnings of the server for the terminal', async () => {
  const warning = { warning: '299 - "\u001b[2Jevil"' }
  const { code, err } = await kubectl(['get', 'pods', 'x', '-o', 'yaml'], (_request, response) => {
    // Node's own server refuses to send such a header.
    response.socket?.write(`HTTP/1.1 200 OK\r\nwarning: ${warning.warning}\r\ncontent-type: application/json\r\n`)
    const body = JSON.stringify(EVIL_POD)
    response.socket?.end(`content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  })
  assert.equal(typeof code, 'number')
  assert.equal(hasControls(err), false)
})

void test('kubectl quotes an HTML error page', async () => {
  const { code, err } = await kubectl(['get', 'pods'], (_request, response) => {
    response.writeHead(502, { 'content-type': 'text/html' })
    response.end('<h1>\u001b[2Jbad gateway</h1>')
  })
  assert.equal(code, 1)
  assert.match(err, /an error on the server \("<h1>\\x1b\[2Jbad gateway<\/h1>"\) has prevented the request/)
})

void test('kubectl times out if the server does not respond', async () => {
  const { code, err } = await kubectl(['get', 'pods', '--request-timeout=1s'], () => undefined)
  assert.equal(code, 1)
  assert.match(err, /^Unable to connect to the server: net\/http: request canceled/)
})

void test('kubectl times out if the server stops in the middle of a response', async () => {
  const { code, err } = await kubectl(['get', 'pods', '--request-timeout=1s'], (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"kind":')
  })
  assert.equal(code, 1)
  assert.match(err, /Client\.Timeout or context cancellation while reading body/)
})

void test('kubectl reports a truncated response', async () => {
  const { code, out, err } = await kubectl(['get', 'pods', 'x', '-o', 'yaml'], (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100000' })
    response.write('{"kind":"Pod"}', () => response.destroy())
  })
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /unexpected error when reading response body\. Please retry\. Original error: unexpected EOF/)
})

void test('kubectl reports an invalid JSON response', async () => {
  const { code, err } = await kubectl(['get', 'pods'], (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('hello')
  })
  assert.equal(code, 1)
  assert.match(err, /invalid character 'h' looking for beginning of value/)
})

void test('kubectl does not follow redirect loops', async () => {
  const { code } = await kubectl(['get', 'pods'], (request, response) => {
    response.writeHead(302, { location: request.url ?? '' })
    response.end()
  })
  assert.equal(code, 1)
})

/** Ten times ten times ten … of what is a few lines. */
function aliases(levels: number): string {
  const level = (at: number): string =>
    `a${at}: &a${at} [${Array(10)
      .fill(`*a${at - 1}`)
      .join(',')}]\n`
  return `a0: &a0 [${Array(10).fill('x').join(',')}]\n${Array.from({ length: levels }, (_, at) => level(at + 1)).join('')}`
}

const START = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }\n'

for (const [name, text, told] of [
  ['exponentially nested aliases', `${START}${aliases(12)}`, /yaml: document contains excessive aliasing/],
  ['a recursive alias', `${START}data: &a [*a]\n`, /yaml: /],
  ['deeply nested YAML', `${START}data: ${'['.repeat(100_000)}${']'.repeat(100_000)}`, /exceeded max depth/],
  ['deeply nested JSON', `{"data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, /exceeded max depth/],
] as const) {
  void test(`kubectl rejects a file with ${name}`, async () => {
    const file = join(folder, 'bad.yaml')
    await writeFile(file, text)
    const { code, err } = await kubectl(['create', '-f', file, '--dry-run=client', '--validate=false'])
    assert.equal(code, 1)
    assert.match(err, told)
  })
}

void test('kubectl kustomize writes only into the named folder', async () => {
  const [source, target] = [join(folder, 'source'), join(folder, 'target', 'inner')]
  await Promise.all([source, target].map((path) => mkdir(path, { recursive: true })))
  await writeFile(join(source, 'kustomization.yaml'), 'resources: [bad.yaml]\n')
  await writeFile(join(source, 'bad.yaml'), START.replace('name: x', 'name: x, namespace: ../../up'))
  const { code } = await kubectl(['kustomize', source, '-o', target])
  assert.equal(code, 0)
  assert.deepEqual(await readdir(target), ['.._.._up_v1_configmap_x.yaml'])
})
