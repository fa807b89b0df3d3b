/** The request filters, in the order in which they run. */
import { auditing } from './audit.ts'
import { authentication } from './authentication.ts'
import { authorization } from './authorization.ts'
import type { CreateFilter } from './filter.ts'
import { impersonation } from './impersonation.ts'
import { seats } from './seats.ts'
import { timeout } from './timeout.ts'

export const FILTERS: readonly CreateFilter[] = [timeout, authentication, auditing, impersonation, seats, authorization]
