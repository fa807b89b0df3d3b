/** Which Ingresses are this controller's, as ingress-nginx decides it. Pure. */
import type { Ingress, IngressClass } from '#apis/networking/v1.ts'

export interface ClassRule {
  /** What IngressClasses of ours say in `spec.controller`. */
  readonly controller: string
  /** The value of the old annotation, and the class that counts while it is not there. */
  readonly className: string
  /** Whether those that name no class are ours. */
  readonly takesUnclassed: boolean
}

const ANNOTATION = 'kubernetes.io/ingress.class'

/** The annotation counts before the field, as it did when there was no field. */
export function isOurs(
  { metadata, spec }: Ingress,
  classOf: (name: string) => IngressClass | undefined,
  { controller, className, takesUnclassed }: ClassRule,
): boolean {
  const annotated = metadata.annotations?.[ANNOTATION]
  if (annotated !== undefined && annotated !== '') return annotated === className
  const { ingressClassName: named } = spec
  if (named === undefined || named === '') return takesUnclassed
  const found = classOf(named)
  return found === undefined ? false : found.spec.controller === controller
}
