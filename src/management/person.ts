/** The type of an authenticated user with the token of the request. */
import type { Token } from './kinds/token.ts'
import type { User } from './kinds/user.ts'

export interface Person {
  readonly user: User
  readonly token: Token
  /** The token came in a cookie, so the request may have been made by another site. */
  readonly hasCookie: boolean
}
