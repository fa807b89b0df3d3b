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
  ['a read after a click on a link of another site', true, 'GET', { 'sec-fetch-site': 'cross-site' }],
  ['HEAD from another site', true, 'HEAD', { 'sec-fetch-site': 'cross-site' }],
  ['OPTIONS from another site', true, 'OPTIONS', { origin: 'https://evil.example' }],
  ['a write from our page', true, 'POST', { ...same, 'x-hk': '1' }],
  ['a write from our page with the header Origin', true, 'POST', { ...same, origin: OWN, 'x-hk': '1' }],
  ['PUT from our page', true, 'PUT', { ...same, 'x-hk': '1' }],
  ['PATCH from our page', true, 'PATCH', { ...same, 'x-hk': '1' }],
  ['DELETE from our page', true, 'DELETE', { ...same, 'x-hk': '1' }],
  ['a write without the header X-HK', false, 'POST', same],
  ['a write with an empty X-HK', false, 'POST', { ...same, 'x-hk': '' }],
  ['a write with another value of X-HK', false, 'POST', { ...same, 'x-hk': 'true' }],
  ['a write with two values of X-HK', false, 'POST', { ...same, 'x-hk': '1, 1' }],
  ['a write without any header', false, 'POST', {}],
  ['a write with only the header X-HK', false, 'POST', { 'x-hk': '1' }],
  ['a write from another site', false, 'POST', { 'sec-fetch-site': 'cross-site', 'x-hk': '1' }],
  ['a write from another host of the same site', false, 'POST', { 'sec-fetch-site': 'same-site', 'x-hk': '1' }],
  ['a write from the address bar', false, 'POST', { 'sec-fetch-site': 'none', 'x-hk': '1' }],
  ['a write with an empty Sec-Fetch-Site', false, 'POST', { 'sec-fetch-site': '', origin: OWN, 'x-hk': '1' }],
  [
    'a write with two values of Sec-Fetch-Site',
    false,
    'POST',
    { 'sec-fetch-site': 'same-origin, cross-site', 'x-hk': '1' },
  ],
  ['a write with Sec-Fetch-Site in other letter case', false, 'POST', { 'sec-fetch-site': 'Same-Origin', 'x-hk': '1' }],
  [
    'a write from another site that claims our Origin',
    false,
    'POST',
    { 'sec-fetch-site': 'cross-site', origin: OWN, 'x-hk': '1' },
  ],
  ['a write from our page by an old browser', true, 'POST', { origin: OWN, 'x-hk': '1' }],
  ['a write without X-HK by an old browser', false, 'POST', { origin: OWN }],
  ['a write with the Origin of another host', false, 'POST', { origin: 'https://evil.example', 'x-hk': '1' }],
  ['a write with an Origin whose host begins with ours', false, 'POST', { origin: `${OWN}.evil.example`, 'x-hk': '1' }],
  [
    'a write with an Origin that contains our host as a user name',
    false,
    'POST',
    { origin: `${OWN}@evil.example`, 'x-hk': '1' },
  ],
  ['a write with an Origin of scheme http', false, 'POST', { origin: `http://${HOST}`, 'x-hk': '1' }],
  ['a write with an Origin of another port', false, 'POST', { origin: `${OWN}:8443`, 'x-hk': '1' }],
  ['a write with the Origin null', false, 'POST', { origin: 'null', 'x-hk': '1' }],
  ['a write with an Origin that has a path', false, 'POST', { origin: `${OWN}/`, 'x-hk': '1' }],
  [
    'a write to our host with the default port',
    true,
    'POST',
    { origin: OWN, 'x-hk': '1' },
    { authority: `${HOST}:443` },
  ],
  [
    'a write to our host with another port',
    true,
    'POST',
    { origin: `${OWN}:8443`, 'x-hk': '1' },
    { authority: `${HOST}:8443` },
  ],
  ['a write to our host in capitals', true, 'POST', { origin: OWN, 'x-hk': '1' }, { authority: 'Rancher.Example.COM' }],
  ['a write to an IPv6 host', true, 'POST', { origin: 'https://[::1]:8443', 'x-hk': '1' }, { authority: '[::1]:8443' }],
  ['a write without a host', false, 'POST', { origin: OWN, 'x-hk': '1' }, { authority: '' }],
  ['an unknown method', false, 'BREW', { 'x-hk': '1' }],
  ['a method in lower case', false, 'get', {}],
  ['a WebSocket from our page', true, 'GET', { origin: OWN }, SOCKET],
  ['a WebSocket from our page with Sec-Fetch-Site', true, 'GET', { ...same, origin: OWN }, SOCKET],
  ['a WebSocket over HTTP/2', true, 'CONNECT', { origin: OWN }, SOCKET],
  ['a WebSocket without Origin', false, 'GET', {}, SOCKET],
  ['a WebSocket with Sec-Fetch-Site and without Origin', false, 'GET', same, SOCKET],
  ['a WebSocket from another site', false, 'GET', { origin: 'https://evil.example' }, SOCKET],
  [
    'a WebSocket from another site by Sec-Fetch-Site',
    false,
    'GET',
    { 'sec-fetch-site': 'cross-site', origin: OWN },
    SOCKET,
  ],
  ['a WebSocket from a sandboxed page', false, 'GET', { origin: 'null', 'x-hk': '1' }, SOCKET],
  ['an upgrade to SPDY without Origin', false, 'POST', { 'x-hk': '1', ...same }, { upgradeProtocol: 'spdy/3.1' }],
]

describe('session cookie of a request', () => {
  for (const [what, isAllowed, method, headers, more] of ROWS) {
    it(`${isAllowed ? 'is accepted' : 'is refused'} for ${what}`, () => {
      assert.equal(cookieProblem(request(method, headers, more), 'https') === undefined, isAllowed)
    })
  }
})

describe('isFromOtherOrigin()', () => {
  const rows: readonly [string, boolean, IncomingHttpHeaders][] = [
    ['a client that is no browser', false, {}],
    ['a request from our page', false, same],
    ['a request from the address bar', false, { 'sec-fetch-site': 'none' }],
    ['a request from our page by an old browser', false, { origin: OWN }],
    ['a request from another site', true, { 'sec-fetch-site': 'cross-site' }],
    ['a request from another host of the same site', true, { 'sec-fetch-site': 'same-site' }],
    ['a request from another site by an old browser', true, { origin: 'https://evil.example' }],
    ['a request from a sandboxed page', true, { origin: 'null' }],
  ]
  for (const [what, isOther, headers] of rows) {
    it(`returns ${isOther} for ${what}`, () => {
      assert.equal(isFromOtherOrigin(request('POST', headers), 'https'), isOther)
    })
  }
})

describe('session cookie of a page on loopback, over http', () => {
  const authority = '127.0.0.1:6444'
  const rows: readonly (readonly [string, boolean, IncomingHttpHeaders, Partial<BrowserRequest>?])[] = [
    ['a write of the page', true, { origin: `http://${authority}`, 'x-hk': '1' }],
    ['a write of a page of another port', false, { origin: 'http://127.0.0.1:3000', 'x-hk': '1' }],
    ['a write of a page of another name of the machine', false, { origin: 'http://localhost:6444', 'x-hk': '1' }],
    ['a write of a page over https', false, { origin: `https://${authority}`, 'x-hk': '1' }],
    ['a WebSocket of the page', true, { origin: `http://${authority}` }, SOCKET],
    ['a WebSocket of a page of another port', false, { origin: 'http://127.0.0.1:3000' }, SOCKET],
  ]
  for (const [what, isAllowed, headers, more] of rows) {
    it(`${isAllowed ? 'is accepted' : 'is refused'} for ${what}`, () => {
      const sent = request('POST', headers, { authority, ...more })
      assert.equal(cookieProblem(sent, 'http') === undefined, isAllowed)
    })
  }
})
