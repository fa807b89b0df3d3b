import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'

import { type BrowserRequest, cookieProblem, isFromOtherOrigin } from './csrf.ts'

const HOST = 'rancher.example.com'
const OWN = `https://${HOST}`

function request(method: string, headers: IncomingHttpHeaders, more: Partial<BrowserRequest> = {}): BrowserRequest {
  return { method, headers, authority: HOST, upgradeProtocol: undefined, ...more }
}

type Row = readonly [
  what: string,
  isAllowed: boolean,
  method: string,
  headers: IncomingHttpHeaders,
  more?: Partial<BrowserRequest>,
]

const SOCKET = { upgradeProtocol: 'websocket' }
const same = { 'sec-fetch-site': 'same-origin' }

const ROWS: readonly Row[] = [
  ['a read without headers', true, 'GET', {}],
  ['a read of the same origin', true, 'GET', same],
  ['a read by a link of another site', true, 'GET', { 'sec-fetch-site': 'cross-site' }],
  ['HEAD', true, 'HEAD', { 'sec-fetch-site': 'cross-site' }],
  ['OPTIONS', true, 'OPTIONS', { origin: 'https://evil.example' }],
  ['a change of our page', true, 'POST', { ...same, 'x-hk': '1' }],
  ['a change of our page with Origin too', true, 'POST', { ...same, origin: OWN, 'x-hk': '1' }],
  ['PUT of our page', true, 'PUT', { ...same, 'x-hk': '1' }],
  ['PATCH of our page', true, 'PATCH', { ...same, 'x-hk': '1' }],
  ['DELETE of our page', true, 'DELETE', { ...same, 'x-hk': '1' }],
  ['a change without X-HK', false, 'POST', same],
  ['a change with an empty X-HK', false, 'POST', { ...same, 'x-hk': '' }],
  ['a change with another X-HK', false, 'POST', { ...same, 'x-hk': 'true' }],
  ['a change with two X-HK', false, 'POST', { ...same, 'x-hk': '1, 1' }],
  ['a change without any header', false, 'POST', {}],
  ['a change with X-HK alone', false, 'POST', { 'x-hk': '1' }],
  ['a change of another site', false, 'POST', { 'sec-fetch-site': 'cross-site', 'x-hk': '1' }],
  ['a change of another host of our site', false, 'POST', { 'sec-fetch-site': 'same-site', 'x-hk': '1' }],
  ['a change of the address bar', false, 'POST', { 'sec-fetch-site': 'none', 'x-hk': '1' }],
  ['an empty Sec-Fetch-Site', false, 'POST', { 'sec-fetch-site': '', origin: OWN, 'x-hk': '1' }],
  ['two Sec-Fetch-Site', false, 'POST', { 'sec-fetch-site': 'same-origin, cross-site', 'x-hk': '1' }],
  ['Sec-Fetch-Site of another case', false, 'POST', { 'sec-fetch-site': 'Same-Origin', 'x-hk': '1' }],
  ['another site with our Origin', false, 'POST', { 'sec-fetch-site': 'cross-site', origin: OWN, 'x-hk': '1' }],
  ['an old browser on our page', true, 'POST', { origin: OWN, 'x-hk': '1' }],
  ['an old browser without X-HK', false, 'POST', { origin: OWN }],
  ['the Origin of another host', false, 'POST', { origin: 'https://evil.example', 'x-hk': '1' }],
  ['the Origin of a longer host', false, 'POST', { origin: `${OWN}.evil.example`, 'x-hk': '1' }],
  ['the Origin of a host with our name as user', false, 'POST', { origin: `${OWN}@evil.example`, 'x-hk': '1' }],
  ['the Origin of http', false, 'POST', { origin: `http://${HOST}`, 'x-hk': '1' }],
  ['the Origin of another port', false, 'POST', { origin: `${OWN}:8443`, 'x-hk': '1' }],
  ['the Origin null', false, 'POST', { origin: 'null', 'x-hk': '1' }],
  ['an Origin with a path', false, 'POST', { origin: `${OWN}/`, 'x-hk': '1' }],
  ['the Origin with the default port', true, 'POST', { origin: OWN, 'x-hk': '1' }, { authority: `${HOST}:443` }],
  ['the Origin with our port', true, 'POST', { origin: `${OWN}:8443`, 'x-hk': '1' }, { authority: `${HOST}:8443` }],
  ['a host in capitals', true, 'POST', { origin: OWN, 'x-hk': '1' }, { authority: 'Rancher.Example.COM' }],
  ['an IPv6 host', true, 'POST', { origin: 'https://[::1]:8443', 'x-hk': '1' }, { authority: '[::1]:8443' }],
  ['a request without host', false, 'POST', { origin: OWN, 'x-hk': '1' }, { authority: '' }],
  ['an unknown method', false, 'BREW', { 'x-hk': '1' }],
  ['a method in lower case', false, 'get', {}],
  ['a WebSocket of our page', true, 'GET', { origin: OWN }, SOCKET],
  ['a WebSocket of our page with metadata', true, 'GET', { ...same, origin: OWN }, SOCKET],
  ['a WebSocket over HTTP/2', true, 'CONNECT', { origin: OWN }, SOCKET],
  ['a WebSocket without Origin', false, 'GET', {}, SOCKET],
  ['a WebSocket with metadata and without Origin', false, 'GET', same, SOCKET],
  ['a WebSocket of another site', false, 'GET', { origin: 'https://evil.example' }, SOCKET],
  ['a WebSocket of another site with metadata', false, 'GET', { 'sec-fetch-site': 'cross-site', origin: OWN }, SOCKET],
  ['a WebSocket of a sandboxed page', false, 'GET', { origin: 'null', 'x-hk': '1' }, SOCKET],
  ['SPDY without Origin', false, 'POST', { 'x-hk': '1', ...same }, { upgradeProtocol: 'spdy/3.1' }],
]

describe('cookieProblem', () => {
  for (const [what, isAllowed, method, headers, more] of ROWS) {
    it(`${isAllowed ? 'accepts' : 'refuses'} ${what}`, () => {
      assert.equal(cookieProblem(request(method, headers, more)) === undefined, isAllowed)
    })
  }
})

describe('isFromOtherOrigin', () => {
  const rows: readonly [string, boolean, IncomingHttpHeaders][] = [
    ['a program', false, {}],
    ['our page', false, same],
    ['the address bar', false, { 'sec-fetch-site': 'none' }],
    ['an old browser on our page', false, { origin: OWN }],
    ['another site', true, { 'sec-fetch-site': 'cross-site' }],
    ['another host of our site', true, { 'sec-fetch-site': 'same-site' }],
    ['an old browser on another site', true, { origin: 'https://evil.example' }],
    ['a sandboxed page', true, { origin: 'null' }],
  ]
  for (const [what, isOther, headers] of rows) {
    it(`returns ${isOther} for ${what}`, () => {
      assert.equal(isFromOtherOrigin(request('POST', headers)), isOther)
    })
  }
})
