/** Person: the authenticated caller of a request, with the token that authenticated the request. */
import type { Token } from './kinds/token.ts'
import type { User } from './kinds/user.ts'

export interface Person {
  readonly user: User
  readonly token: Token
  /** The token came in a cookie, so the request may have been made by another site. */
  readonly hasCookie: boolean
}
