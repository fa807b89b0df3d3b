/** How a request is shown to admission, whatever it is: the one place where Attributes are made. */
import type { Attributes, Subject } from './admission.ts'
import type { ObjectReader } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'

/** What plugins are shown of a request; `request.gvk` is the kind of the object that it brings. */
export function attributesOf(request: WriteRequest, objects: ObjectReader, subject: Subject): Attributes {
  return new RequestAttributes(request, objects, subject)
}

/** Made anew for every write, and twice for most: what few plugins ask for is looked up when they do. */
class RequestAttributes implements Attributes {
  readonly operation: Subject['operation']
  readonly kind: Subject['kind']
  readonly addressed: Attributes['addressed']
  readonly subresource: string
  readonly objectKind: Attributes['objectKind']
  readonly namespace: string
  readonly name: string
  readonly object: Subject['object']
  readonly oldObject: Subject['oldObject']
  readonly options: Attributes['options']
  readonly dryRun: boolean
  readonly user: Attributes['user']
  readonly objects: ObjectReader
  readonly annotate: Attributes['annotate']
  readonly deadlineMs: number | undefined
  private readonly request: WriteRequest

  constructor(request: WriteRequest, objects: ObjectReader, subject: Subject) {
    const { group, version, plural: resource } = subject.kind
    this.operation = subject.operation
    this.kind = subject.kind
    this.addressed = request.addressed ?? { group, version, resource }
    this.subresource = request.subresource
    this.objectKind = request.gvk
    this.namespace = request.namespace
    this.name = request.isOneOfMany === true ? '' : subject.name
    this.object = subject.object
    this.oldObject = subject.oldObject
    this.options = request.options
    this.dryRun = request.dryRun
    this.user = request.user
    this.objects = objects
    this.annotate = request.annotate
    this.deadlineMs = request.deadlineMs
    this.request = request
  }

  warn(text: string): void {
    this.request.warn(text)
  }

  get signal(): AbortSignal {
    return this.request.signal
  }
}

/**
 * Admission of what is never stored: a binding, an eviction, a review, a connection. Plugins may change the object; those
 * that only look at it are asked by what is returned. Both throw StatusError when one refuses.
 */
export async function admit(
  { admission, objects }: Services,
  request: WriteRequest,
  subject: Subject,
): Promise<() => Promise<void>> {
  const attributes = attributesOf(request, objects, subject)
  await admission.mutate(attributes)
  return async () => admission.validate(attributes)
}
