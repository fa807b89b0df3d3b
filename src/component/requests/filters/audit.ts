/**
 * Audit filter: records the first audit event of a request, after authentication. Throws StatusError 500 if it cannot
 * be stored.
 */
import type { ActiveRequest } from '../active-request.ts'
import type { CreateFilter } from './filter.ts'

export const auditing: CreateFilter = ({ audit }) => (audit === undefined ? undefined : receive)

async function receive(request: ActiveRequest): Promise<void> {
  request.trail = await request.audit?.received(request.user)
  request.meter.passed('audit')
}
