/** The JSON of `GET /ui/session`, from which the page learns where it is and who uses it. */

export interface SessionView {
  /** `one-cluster`: `hyperkube up` or `hyperkube console`. `many-clusters`: the management server. */
  readonly mode: 'one-cluster' | 'many-clusters'
  /** Of hyperkube. */
  readonly version: string
  /** Null: the page must ask for a log-in. */
  readonly user: SessionUser | null
  /** The only cluster, in the mode `one-cluster`. */
  readonly clusters?: readonly { readonly name: string; readonly displayName: string }[]
  /** The ways to log in, in the mode `many-clusters` without a user. */
  readonly providers?: readonly LoginProvider[]
}

export interface SessionUser {
  readonly name: string
  readonly username: string
  readonly displayName: string
  readonly isAdministrator: boolean
  readonly mustChangePassword: boolean
  readonly groups: readonly string[]
  /** In the mode `many-clusters`: the permissions at the routes of the server, such as `manage users`. */
  readonly rights?: readonly string[]
}

export interface LoginProvider {
  readonly name: string
  readonly type: string
  readonly displayName: string
}
