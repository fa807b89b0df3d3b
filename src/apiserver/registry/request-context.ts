/** The data about a request that the hooks of a resource receive during a write. */
import type { User } from '#auth/user.ts'

import type { ObjectReader, ObjectWriter, WriteContext } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'

/** The signal is created on demand, because few hooks use it. */
export class RequestContext implements WriteContext {
  readonly clock: Services['clock']
  readonly random: Services['random']
  readonly isEnabled: Services['isEnabled']
  readonly allowPrivileged: boolean
  readonly objects: ObjectReader
  readonly writer: ObjectWriter
  readonly user: User
  readonly verb: string
  readonly dryRun: boolean
  private readonly request: WriteRequest

  constructor(services: Services, request: WriteRequest) {
    this.clock = services.clock
    this.random = services.random
    this.isEnabled = services.isEnabled
    this.allowPrivileged = services.allowPrivileged
    this.objects = services.objects
    this.writer = services.writer
    this.user = request.user
    this.verb = request.verb ?? 'update'
    this.dryRun = request.dryRun
    this.request = request
  }

  get signal(): AbortSignal {
    return this.request.signal
  }
}
