import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exampleEvent, exampleSubject } from './event.fixture.ts'
import { eventLine, eventListText, legacyText, withoutObjects } from './event.ts'

const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')

describe('audit events', () => {
  it('are encoded as JSON lines, byte for byte as in Go', () => {
    const event = exampleEvent({
      responseStatus: { status: 'Failure', message: 'a "b"', reason: 'NotFound', details: { name: 'x' }, code: 404 },
      annotations: new Map([
        ['b/x', '<y>'],
        ['a/x', ''],
      ]),
    })
    assert.equal(
      utf8(eventLine(event)),
      '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id-1","stage":"ResponseComplete",' +
        String.raw`"requestURI":"/api/v1/namespaces/a/pods?limit=5\u0026watch=true","verb":"watch",` +
        String.raw`"user":{"username":"jané","uid":"2","groups":["dev","qa"],"extra":{"a":["\u003c1\u003e"],"b":["2"]}},` +
        '"sourceIPs":["192.0.2.9"],"userAgent":"kubectl/v1",' +
        '"objectRef":{"resource":"pods","namespace":"a","apiVersion":"v1","subresource":"log"},' +
        String.raw`"responseStatus":{"metadata":{},"status":"Failure","message":"a \"b\"","reason":"NotFound","details":{"name":"x"},"code":404},` +
        '"requestReceivedTimestamp":"2026-01-02T03:04:05.678000Z","stageTimestamp":"2026-01-02T03:04:06.007000Z",' +
        String.raw`"annotations":{"a/x":"","b/x":"\u003cy\u003e"}}` +
        '\n',
    )
  })

  it('contain request and response objects unchanged', () => {
    const line = eventLine(exampleEvent({ requestObject: '{"a":1}', responseObject: '{"b":2}' }))
    assert.match(line, /"code":200},"requestObject":\{"a":1},"responseObject":\{"b":2},"requestReceived/)
  })

  it('omit absent members', () => {
    const subject = { ...exampleSubject, user: undefined, sourceIps: [], userAgent: '', objectRef: undefined }
    const line = eventLine(exampleEvent({ stage: 'RequestReceived', responseStatus: undefined }, subject))
    const { user, sourceIPs, objectRef, responseStatus } = JSON.parse(line) as Record<string, unknown>
    assert.deepEqual([user, sourceIPs, objectRef, responseStatus], [{}, undefined, undefined, undefined])
  })

  it('contain the impersonated user and the constraint', () => {
    const impersonatedUser = { name: 'bob', uid: '', groups: ['g'], extra: {} }
    const subject = { ...exampleSubject, impersonatedUser, impersonationConstraint: 'impersonate:user-info' }
    assert.match(
      eventLine(exampleEvent({}, subject)),
      /"impersonatedUser":\{"username":"bob","groups":\["g"]},"authenticationMetadata":\{"impersonationConstraint":"impersonate:user-info"}/,
    )
  })

  it('are sent to webhooks in an EventList, without a kind of each event', () => {
    const text = eventListText([exampleEvent(), exampleEvent({ auditId: 'id-2' })])
    const { kind, apiVersion, metadata, items } = JSON.parse(utf8(text)) as Record<string, unknown>
    assert.deepEqual([kind, apiVersion, metadata], ['EventList', 'audit.k8s.io/v1', {}])
    const [first, second] = items as Record<string, unknown>[]
    assert.deepEqual([first?.['kind'], first?.['auditID'], second?.['auditID']], [undefined, 'id-1', 'id-2'])
  })

  it('are one line of text in the legacy format', () => {
    assert.equal(
      legacyText(exampleEvent()),
      '2026-01-02T03:04:05.678Z AUDIT: id="id-1" stage="ResponseComplete" ip="192.0.2.9" method="watch" user="jané" ' +
        String.raw`groups="\"dev\",\"qa\"" as="<self>" asgroups="<lookup>" user-agent="kubectl/v1" namespace="a" ` +
        'uri="/api/v1/namespaces/a/pods?limit=5&watch=true" response="200"',
    )
    const withoutUser = { ...exampleSubject, user: undefined, sourceIps: [], objectRef: undefined }
    assert.match(
      legacyText(exampleEvent({ responseStatus: undefined, receivedMs: Date.UTC(2026, 0, 2) }, withoutUser)),
      /^2026-01-02T00:00:00Z AUDIT: .* ip="<unknown>" .* user="<none>" groups="<none>" .* namespace="<none>" .* response="<deferred>"$/,
    )
  })

  it('have an annotation if their objects were removed', () => {
    const cut = withoutObjects(exampleEvent({ requestObject: '{}', responseObject: '{}' }))
    assert.deepEqual([cut.requestObject, cut.responseObject], [undefined, undefined])
    assert.deepEqual([...cut.annotations], [['audit.k8s.io/truncated', 'true']])
  })
})
