/** What a Service needs from elsewhere: addresses and ports. Here only what its resource asks of who has them. */
import type { Service } from '#apis/core/v1.ts'
import type { Finish, WriteContext } from '#apiserver/registry/resource.ts'
import type { IpFamily } from '#model/services.ts'

export interface ServiceAllocator {
  /** The family of the first service range: what a Service gets that asks for none. */
  readonly primaryFamily: IpFamily
  /**
   * Fills in families, cluster IPs and node ports of `next` and reserves them. Throws a StatusError, with nothing
   * reserved, when that cannot be. The Finish gives back what turns out not to be used, and never throws.
   */
  allocate(next: Service, old: Service | undefined, context: WriteContext): Promise<Finish>
  /** Gives back everything a Service had that is gone. Never throws: what is left is found by the repair. */
  release(service: Service, context: WriteContext): Promise<void>
}
