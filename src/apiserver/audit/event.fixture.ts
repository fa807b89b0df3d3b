/** A sample audit event for tests. */
import { type AuditEvent, type EventSubject, subjectText } from './event.ts'

export const exampleSubject: EventSubject = {
  requestUri: '/api/v1/namespaces/a/pods?limit=5&watch=true',
  verb: 'watch',
  user: { name: 'jané', uid: '2', groups: ['dev', 'qa'], extra: { b: ['2'], a: ['<1>'] } },
  impersonatedUser: undefined,
  impersonationConstraint: '',
  sourceIps: ['192.0.2.9'],
  userAgent: 'kubectl/v1',
  objectRef: {
    resource: 'pods',
    namespace: 'a',
    name: '',
    uid: '',
    apiGroup: '',
    apiVersion: 'v1',
    resourceVersion: '',
    subresource: 'log',
  },
}

export function exampleEvent(changes: Partial<AuditEvent> = {}, subject: EventSubject = exampleSubject): AuditEvent {
  return {
    level: 'Metadata',
    auditId: 'id-1',
    stage: 'ResponseComplete',
    subject,
    subjectText: subjectText(subject),
    responseStatus: { code: 200 },
    requestObject: undefined,
    responseObject: undefined,
    receivedMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    stageMs: Date.UTC(2026, 0, 2, 3, 4, 6, 7),
    annotations: new Map(),
    ...changes,
  }
}
