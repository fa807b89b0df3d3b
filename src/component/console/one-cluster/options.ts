/** The settings of the console of one cluster. */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import type { SessionUser } from '../session-view.ts'
import type { ConsoleTarget } from './cluster-route.ts'
import type { SessionStore } from './sessions.ts'

export interface ConsoleOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** On loopback. 0, and a port that is in use: a free one. */
  readonly port: number
  readonly target: ConsoleTarget
  /** Of the cluster, for people. */
  readonly displayName: string
  /** Of hyperkube. */
  readonly version: string
  /** The identity of all requests. */
  readonly user: () => Promise<SessionUser>
  /** The command that shows a new link. */
  readonly newLinkCommand: string
  /** Called with the first link, and with a new one each time that a link was used. */
  readonly onLink: (link: string) => Promise<void>
  /** Absent: sessions end with the process. */
  readonly store?: SessionStore
  /** Default: the page of this package. */
  readonly pageFolder?: URL
}
